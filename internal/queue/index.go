// SPDX-License-Identifier: Apache-2.0

package queue

// Index is the ready messages of a queue in the order in which they are delivered,
// and the entries of all messages.
type Index struct {
	msgs         store
	groups       groups
	clock        int64 // latest time seen; it never goes back
	ready        int64 // messages that are ready
	sessionQueue bool  // listed are not messages but sessions, by their messages

	arrangement         // in force
	next        filling // to take its place
	byLevel     []readyStat
	classes     []classStat
}

// joinGroup makes the fair key of a group known that has its first message.
func (x *Index) joinGroup(n uint32) {
	x.joinKey(n, nil)
	if x.next.arrangement != nil {
		x.swap()
		x.joinKey(n, x.next.arrangement)
		x.swap()
	}
}

// leaveGroup says that a group has no messages any more.
func (x *Index) leaveGroup(n uint32) {
	x.leaveKey(n, x.clock)
	if x.next.arrangement != nil {
		x.next.leaveKey(n, x.clock)
	}
}

// runFor returns the run in which to allocate a message that is about to be ready.
func (x *Index) runFor(k orderKey, l Level) *slabRun {
	if p, ok := x.levels.at(x, l).(*plainLane); ok && p.runs {
		return p.list.runFor(&x.msgs, k)
	}
	return nil
}

// add lists a message: it can be delivered, or its session can be locked.
func (x *Index) add(k orderKey, e *entry) {
	x.levels.add(x, k, e)
	if x.next.arrangement != nil {
		x.addToSecond(k, e)
	}
}

// remove takes a message out that is listed.
func (x *Index) remove(k orderKey, e *entry) {
	x.levels.remove(x, k, e)
	if x.next.arrangement != nil {
		x.removeFromSecond(k, e)
	}
}

// take takes the message out that next returned: it is being delivered.
func (x *Index) take(k orderKey, e *entry) {
	x.levels.take(x, k, e)
	if x.next.arrangement != nil {
		x.removeFromSecond(k, e)
	}
}

// pick returns the message to deliver next among the levels from lo to hi.
func (x *Index) pick(at int64, lo, hi Level) (orderKey, bool) {
	l, ok := x.levels.picker.pick(x, at, lo, hi)
	if !ok {
		return orderKey{}, false
	}
	return x.levels.all[l].first(x)
}

// count counts a message that became ready.
func (x *Index) count(seq SeqNo, e *entry) {
	for int(e.level) >= len(x.byLevel) {
		x.byLevel = append(x.byLevel, readyStat{})
	}
	lv := &x.byLevel[e.level]
	lv.ready++
	lv.bytes += int64(e.bodySize)
	x.classes = countClass(x.classes, seq, e)
	x.msgs.noteExpiry(seq, e.expiry())
}

// uncount counts a message that is not ready any more.
func (x *Index) uncount(e *entry) {
	lv, st := &x.byLevel[e.level], &x.classes[e.class]
	lv.ready--
	st.ready--
	lv.bytes -= int64(e.bodySize)
	st.bytes -= int64(e.bodySize)
}

// resize counts the bytes by which the body of a ready message has grown.
func (x *Index) resize(e *entry, grown int64) {
	x.byLevel[e.level].bytes += grown
	x.classes[e.class].bytes += grown
}
