// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// key is the place of a message among its like: the older first, then the lower
// number.
type key struct {
	at  int64
	seq SeqNo
}

func (a key) before(b key) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (a key) compare(b key) int {
	switch {
	case a.before(b):
		return -1
	case b.before(a):
		return 1
	}
	return 0
}

// place says which messages stand in a line, so that one that left it, and is
// still mentioned there, can be told from one that stands: those that are ready
// and pass every test that is set.
type place struct {
	tests   tests
	level   Level
	fairKey uint32 // in keys
	session uint32 // in sessions
}

type tests uint8

const (
	ofLevel   tests = 1 << iota
	ofKey           // the fair key
	ofSession       // the session
	atHead          // a free session is offered by it
)

// line keeps messages in the order of their keys. Most come and go in order and
// wait in the fifo. One that returns, or brought its age along, is older than
// the last of the fifo and waits in the heap. So does everyone in a very short
// line: a heap of few is smaller than a chunk. At the end of a long line those
// who come are laid in a row, where it needs no mention of them.
//
// A message that leaves from the middle is still mentioned until it gets to the
// front, and may be mentioned twice when it came back meanwhile: a mention is no
// more than a hint, its key never changes, and only the state of the message
// says whether it stands here. The same goes for a place in the row.
type line struct {
	place
	back heap[key]
	fifo *fifo[SeqNo] // nil until the line is long
	row  *row         // behind the fifo; nil until the line is very long
	tail key          // of the last in fifo or row
}

const (
	shortLine = 16
	longLine  = 256
	slack     = 64 // mentions beyond twice the messages that are tolerated
)

// mentions returns how many mentions there are, stale ones included.
func (l *line) mentions() int { return len(l.back) + l.queued() + l.laid() }

// queued returns how many of them are in the fifo.
func (l *line) queued() int {
	if l.fifo == nil {
		return 0
	}
	return l.fifo.n
}

// laid returns how many places there are in the row.
func (l *line) laid() int {
	if l.row == nil {
		return 0
	}
	return l.row.n
}

// end returns the row in which a new message should be laid that is about to
// stand in the line; nil if with the rest. Those of sessions and fair keys are
// too many, and too short, to have rows.
func (l *line) end(k key) *row {
	if l.tests != ofLevel || l.laid() == 0 && l.queued() < longLine || k.before(l.tail) {
		return nil
	}
	if l.row == nil {
		l.row = new(row)
	}
	l.row.fresh = k.seq
	return l.row
}

func (l *line) push(k key) {
	n := l.queued()
	switch {
	case l.row != nil && l.row.fresh == k.seq: // it lies there already
		l.row.fresh = 0
	case l.laid() > 0 || n == 0 && len(l.back) < shortLine || n > 0 && k.before(l.tail):
		l.back.push(k)
		return
	default:
		if l.fifo == nil {
			l.fifo = new(fifo[SeqNo])
		}
		l.fifo.push(k.seq)
	}
	l.tail = k
}

// first returns the first message that stands in the line, and forgets the
// stale mentions before it.
func (l *line) first(q *Queue) (k key, ok bool) {
	for len(l.back) > 0 {
		if k = l.back[0]; q.stands(k.seq, &l.place) != nil {
			ok = true
			break
		}
		l.back.pop()
	}
	if e := l.ahead(q); e != nil {
		if f := (key{l.age(e), e.seq}); !ok || f.before(k) {
			return f, true
		}
	}
	if !ok {
		return key{}, false // not the last of the stale ones
	}
	return k, true
}

// ahead returns the first message of the fifo and the row, nil if they are empty.
func (l *line) ahead(q *Queue) *entry {
	for l.queued() > 0 {
		if e := q.stands(*l.fifo.at(0), &l.place); e != nil {
			return e
		}
		l.fifo.pop()
	}
	for l.laid() > 0 {
		q.msgs.hot = l.row.head()
		if e := q.msgs.at(q.msgs.hot); q.standsAt(e, &l.place) {
			return e
		}
		q.msgs.step(l.row)
	}
	return nil
}

// age returns the first half of a key. Inside a session only numbers count, if
// the line is not that of one level.
func (l *line) age(e *entry) int64 {
	if l.tests == ofSession {
		return 0
	}
	return e.enqueued
}

// popFirst removes what first just returned.
func (l *line) popFirst(q *Queue, k key) {
	switch {
	case len(l.back) > 0 && l.back[0] == k:
		l.back.pop()
	case l.queued() > 0:
		l.fifo.pop()
	default:
		q.msgs.step(l.row)
	}
}

// tidy rewrites the line when most of its mentions are stale or so many are in
// the heap that the fifo is the better place. live is how many stand in it.
func (l *line) tidy(q *Queue, live int) {
	switch {
	case live == 0:
		l.back, l.fifo = l.back[:0], nil
		if l.laid() > 0 {
			q.msgs.leave(l.row)
		}
	case l.mentions() > 2*live+slack, len(l.back) > slack+(l.queued()+l.laid())/2:
		l.rewrite(q)
	}
}

// rewrite leaves one mention of each message, in the fifo or in a new row.
func (l *line) rewrite(q *Queue) {
	back := slices.SortedFunc(slices.Values(l.back), key.compare)
	old := *l
	old.back = nil
	l.back, l.fifo, l.row, l.tail = nil, new(fifo[SeqNo]), nil, key{}
	add := func(k key) {
		if k != l.tail && q.stands(k.seq, &l.place) != nil {
			l.append(q, k)
		}
	}
	for e := old.ahead(q); e != nil; e = old.ahead(q) {
		k := key{l.age(e), e.seq}
		old.popFirst(q, k)
		for len(back) > 0 && !k.before(back[0]) {
			add(back[0])
			back = back[1:]
		}
		add(k)
	}
	for _, k := range back {
		add(k)
	}
}

// append lets a message stand at the end, wherever it was laid before.
func (l *line) append(q *Queue, k key) {
	if r := l.end(k); r != nil {
		q.msgs.move(k.seq, r)
	}
	l.push(k)
}
