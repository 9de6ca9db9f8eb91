// SPDX-License-Identifier: Apache-2.0

package queue

// orderKey orders the messages of a list: by order time, then by sequence number.
// It does not change while a message is ready.
type orderKey struct {
	at  int64
	seq SeqNo
}

func (a orderKey) before(b orderKey) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// sortedList keeps messages in the order of their keys. It has two parts, each in
// order, and the head of the list is the smaller of their heads:
//
//	run   [w w w w] <-> [w w w  ]   messages that arrived in order while the list
//	                                was long; the entries themselves are adjacent,
//	                                nothing else refers to them
//	list  7 9 12 310 …              sequence numbers of all others: of a short list,
//	                                and of messages that came back (an abandoned
//	                                message is older than the tail)
//
// From longList messages on, new entries are allocated in the run. Deletion is exact
// in both parts: a message is in the list if and only if it was added and not
// removed. So removing many from the middle leaves nothing to clean up.
type sortedList struct {
	list seqList
	run  *slabRun // nil until the list was long once
	tail orderKey // no message in the list has a greater key
}

// longList is the length from which on new messages are allocated in a run.
const longList = 256

// inRun returns how many messages are in the run.
func (l *sortedList) inRun() int {
	if l.run == nil {
		return 0
	}
	return l.run.n
}

// runFor returns the run in which to allocate a message that is about to be added;
// nil for the shared slab.
func (l *sortedList) runFor(s *store, k orderKey) *slabRun {
	if l.inRun() == 0 && l.list.n < longList || k.before(l.tail) {
		return nil
	}
	if l.run == nil {
		l.run = new(slabRun)
	}
	if last := &s.all[l.run.last]; last.used == slabLen && last.inRun <= thinSlab && l.run.last != l.run.first {
		l.dissolveSlab(s, l.run.last) // it is about to be in the middle
	}
	l.run.pending = k.seq
	return l.run
}

// add adds a message.
func (l *sortedList) add(s *store, k orderKey, e *entry) {
	switch {
	case l.run != nil && l.run.pending == k.seq: // it was allocated there
		s.enterRun(l.run, e)
	case k.before(l.tail) && l.list.n > 0:
		l.list.insert(s, k, byOrderTime)
		return
	case k.before(l.tail):
		l.list.push(k)
		return
	default:
		l.list.push(k)
	}
	l.tail = k
}

// first returns the first message.
func (l *sortedList) first(s *store) (k orderKey, ok bool) {
	if l.list.n > 0 {
		k, ok = s.keyOf(l.list.first(), byOrderTime), true
	}
	if l.inRun() > 0 {
		n := s.runHead(l.run)
		e := s.at(n)
		if f := (orderKey{e.orderTime, e.seq}); !ok || f.before(k) {
			s.hint = n
			return f, true
		}
	}
	return k, ok
}

// last returns the last message.
func (l *sortedList) last(s *store) (k orderKey, ok bool) {
	if l.list.n > 0 {
		k, ok = s.keyOf(l.list.last(), byOrderTime), true
	}
	if l.inRun() > 0 {
		n := s.runEnd(l.run)
		e := s.at(n)
		if f := (orderKey{e.orderTime, e.seq}); !ok || k.before(f) {
			s.hint = n
			return f, true
		}
	}
	return k, ok
}

// remove removes a message that is in the list.
func (l *sortedList) remove(s *store, k orderKey, e *entry) {
	switch {
	case l.run != nil && e.flags&flagInRun != 0:
		if s.popRun(l.run, e) { // mostly it is the first
			return
		}
		n := s.addrOf(k.seq)
		if s.exitRun(l.run, n) {
			l.dissolveSlab(s, n.slab())
		}
	case l.list.first() == k.seq:
		l.list.popFirst()
	case l.list.last() == k.seq:
		l.list.popLast()
	default:
		l.list.remove(k)
	}
}

// dissolveSlab takes a slab out of the run and adds its messages to the other part.
func (l *sortedList) dissolveSlab(s *store, n uint32) {
	sh := &s.all[n]
	for i := range sh.used {
		if e := &sh.entries[i]; e.flags&flagInRun != 0 {
			e.flags &^= flagInRun
			l.run.n--
			l.list.insert(s, orderKey{e.orderTime, e.seq}, byOrderTime)
		}
	}
	s.unlinkSlab(l.run, n)
}
