// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Index is the ready messages of a queue in the order in which they are delivered,
// and the entries of all messages.
type Index struct {
	Entries      entries.Store
	Groups       entries.Groups
	Clock        int64 // latest time seen; it never decreases
	Ready        int64 // messages that are ready
	sessionQueue bool  // it lists sessions, by their messages

	SessionLevels int64 // for which sessions have memory, beyond the first of each

	arrangement         // in force
	next        filling // that replaces it, if any
	byLevel     []readyStat
	classes     []classStat
}

// New returns an empty index. In a session queue it lists sessions.
func New(o ordering.Order, sessionQueue bool) Index {
	return Index{arrangement: newArrangement(o), sessionQueue: sessionQueue, Groups: entries.NewGroups()}
}

// HasReady reports whether there is a message to deliver among the levels from lo to
// hi.
func (x *Index) HasReady(lo, hi ordering.Level) bool {
	_, ok := x.levels.open.highest(lo, hi)
	return ok
}

// Served says that a session was locked because of the message e.
func (x *Index) Served(e *entries.Entry) { x.levels.served(x, e) }

// Deadline returns when WakeKeys has work.
func (x *Index) Deadline() int64 { return x.keys.deadline() }

// PlainList returns the list of a level whose messages are in one list, nil if there
// is none.
func (x *Index) PlainList(l ordering.Level) *entries.SortedList {
	if int(l) < len(x.levels.all) {
		if p, ok := x.levels.all[l].(*plainLane); ok {
			return &p.list
		}
	}
	return nil
}

// JoinGroup adds the fair key of a group that has its first message.
func (x *Index) JoinGroup(n uint32) {
	x.joinKey(n, nil)
	if x.next.arrangement != nil {
		x.swap()
		x.joinKey(n, x.next.arrangement)
		x.swap()
	}
}

// LeaveGroup says that a group has no messages any more.
func (x *Index) LeaveGroup(n uint32) {
	x.leaveKey(n, x.Clock)
	if x.next.arrangement != nil {
		x.next.leaveKey(n, x.Clock)
	}
}

// RunFor returns the run in which to allocate a message that is about to be ready.
func (x *Index) RunFor(k entries.OrderKey, l ordering.Level) *entries.SlabRun {
	if p, ok := x.levels.at(x, l).(*plainLane); ok && p.runs {
		return p.list.RunFor(&x.Entries, k)
	}
	return nil
}

// Add lists a message: it can be delivered, or its session can be locked.
func (x *Index) Add(k entries.OrderKey, e *entries.Entry) {
	x.levels.add(x, k, e)
	if x.next.arrangement != nil {
		x.addToSecond(k, e)
	}
}

// Remove removes a message that is listed.
func (x *Index) Remove(k entries.OrderKey, e *entries.Entry) {
	x.levels.remove(x, k, e)
	if x.next.arrangement != nil {
		x.removeFromSecond(k, e)
	}
}

// Take removes the message that Pick returned: it is being delivered.
func (x *Index) Take(k entries.OrderKey, e *entries.Entry) {
	x.levels.take(x, k, e)
	if x.next.arrangement != nil {
		x.removeFromSecond(k, e)
	}
}

// Pick returns the message to deliver next among the levels from lo to hi.
func (x *Index) Pick(at int64, lo, hi ordering.Level) (entries.OrderKey, bool) {
	l, ok := x.levels.picker.pick(x, at, lo, hi)
	if !ok {
		return entries.OrderKey{}, false
	}
	return x.levels.all[l].first(x)
}

// Count counts a message that became ready.
func (x *Index) Count(seq entries.SeqNo, e *entries.Entry) {
	for int(e.Level) >= len(x.byLevel) {
		x.byLevel = append(x.byLevel, readyStat{})
	}
	lv := &x.byLevel[e.Level]
	lv.ready++
	lv.bytes += int64(e.BodySize)
	x.classes = countClass(x.classes, seq, e)
	x.Entries.NoteExpiry(seq, e.Expiry())
}

// Uncount counts a message that is not ready any more.
func (x *Index) Uncount(e *entries.Entry) {
	lv, st := &x.byLevel[e.Level], &x.classes[e.Class]
	lv.ready--
	st.ready--
	lv.bytes -= int64(e.BodySize)
	st.bytes -= int64(e.BodySize)
}

// Resize counts the bytes by which the body of a ready message has grown.
func (x *Index) Resize(e *entries.Entry, grown int64) {
	x.byLevel[e.Level].bytes += grown
	x.classes[e.Class].bytes += grown
}
