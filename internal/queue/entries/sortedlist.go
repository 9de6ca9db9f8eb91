// SPDX-License-Identifier: Apache-2.0

package entries

// OrderKey orders the messages of a list: by order time, then by sequence number.
// It does not change while a message is ready.
type OrderKey struct {
	At  int64
	Seq SeqNo
}

func (a OrderKey) Before(b OrderKey) bool {
	return a.At < b.At || a.At == b.At && a.Seq < b.Seq
}

// Key returns the key of a message.
func (e *Entry) Key() OrderKey { return OrderKey{e.OrderTime, e.Seq} }

// SortedList keeps messages in the order of their keys. It has two parts, each in
// order, and the head of the list is the smaller of their heads:
//
//	run   [w w w w] <-> [w w w  ]   messages that arrived in order while the list
//	                                was long; the entries themselves are adjacent,
//	                                nothing else refers to them
//	list  7 9 12 310 …              sequence numbers of all others: of a short list,
//	                                and of requeued messages (an abandoned message
//	                                is older than the tail)
//
// From longList messages on, new entries are allocated in the run. Deletion is exact
// in both parts: a message is in the list if and only if it was added and not
// removed. So removing many from the middle leaves nothing to clean up.
type SortedList struct {
	list SeqList
	run  *SlabRun // nil until the list was long once
	tail OrderKey // no message in the list has a greater key
}

// longList is the length from which on new messages are allocated in a run.
const longList = 256

// InRun returns how many messages are in the run.
func (l *SortedList) InRun() int {
	if l.run == nil {
		return 0
	}
	return l.run.n
}

// Len returns how many messages the list has.
func (l *SortedList) Len() int { return l.list.n + l.InRun() }

// UseBuffer sets the memory for the first messages of a list that has none yet.
func (l *SortedList) UseBuffer(b []SeqNo) {
	if l.list.few == nil {
		l.list.few = b[:0]
	}
}

// Reset empties a list that has no run and retains the memory of a short one.
func (l *SortedList) Reset() {
	l.list.reset()
	l.tail = OrderKey{}
}

// ResetTail says that the list has become empty: the next key may be any.
func (l *SortedList) ResetTail() { l.tail = OrderKey{} }

// SlabRun returns the run of the list, nil if no message is in it.
func (l *SortedList) SlabRun() *SlabRun {
	if l.InRun() == 0 {
		return nil
	}
	return l.run
}

// RunFor returns the run in which to allocate a message that is about to be added;
// nil for the shared slab.
func (l *SortedList) RunFor(s *Store, k OrderKey) *SlabRun {
	if l.InRun() == 0 && l.list.Len() < longList || k.Before(l.tail) {
		return nil
	}
	if l.run == nil {
		l.run = new(SlabRun)
	}
	if last := &s.all[l.run.last]; last.used == SlabLen && last.inRun <= thinSlab && l.run.last != l.run.first {
		l.dissolveSlab(s, l.run.last) // it is about to be in the middle
	}
	l.run.pending = k.Seq
	return l.run
}

// Add adds a message.
func (l *SortedList) Add(s *Store, k OrderKey, e *Entry) {
	switch {
	case l.run != nil && l.run.pending == k.Seq: // it was allocated there
		s.enterRun(l.run, e)
	case k.Before(l.tail) && l.list.Len() > 0:
		l.list.insert(s, k, byOrderTime)
		return
	case k.Before(l.tail):
		l.list.push(k)
		return
	default:
		l.list.push(k)
	}
	l.tail = k
}

// First returns the first message.
func (l *SortedList) First(s *Store) (k OrderKey, ok bool) {
	if l.list.Len() > 0 {
		k, ok = s.keyOf(l.list.First(), byOrderTime), true
	}
	if l.InRun() > 0 {
		n := s.runHead(l.run)
		e := s.at(n)
		if f := (OrderKey{e.OrderTime, e.Seq}); !ok || f.Before(k) {
			s.Hint = n
			return f, true
		}
	}
	return k, ok
}

// Last returns the last message.
func (l *SortedList) Last(s *Store) (k OrderKey, ok bool) {
	if l.list.Len() > 0 {
		k, ok = s.keyOf(l.list.last(), byOrderTime), true
	}
	if l.InRun() > 0 {
		n := s.runEnd(l.run)
		e := s.at(n)
		if f := (OrderKey{e.OrderTime, e.Seq}); !ok || k.Before(f) {
			s.Hint = n
			return f, true
		}
	}
	return k, ok
}

// Remove removes a message that is in the list.
func (l *SortedList) Remove(s *Store, k OrderKey, e *Entry) {
	switch {
	case l.run != nil && e.Flags&flagInRun != 0:
		if s.popRun(l.run, e) { // mostly it is the first
			return
		}
		n := s.addrOf(k.Seq)
		if s.exitRun(l.run, n) {
			l.dissolveSlab(s, n.slab())
		}
	case l.list.First() == k.Seq:
		l.list.PopFirst()
	case l.list.last() == k.Seq:
		l.list.popLast()
	default:
		l.list.Remove(k)
	}
}

// dissolveSlab removes a slab from the run and adds its messages to the other part.
func (l *SortedList) dissolveSlab(s *Store, n uint32) {
	sh := &s.all[n]
	for i := range sh.used {
		if e := &sh.entries[i]; e.Flags&flagInRun != 0 {
			e.Flags &^= flagInRun
			l.run.n--
			s.inRuns--
			l.list.insert(s, OrderKey{e.OrderTime, e.Seq}, byOrderTime)
		}
	}
	s.unlinkSlab(l.run, n)
}
