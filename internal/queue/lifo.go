// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// lifoLane serves the newest first. Most messages come in order and wait on a
// stack. One that returns, or brought its age along, is older than the top and
// waits in the heap. As in a line, a mention is only a hint.
type lifoLane struct {
	place
	stack fifo[key] // the newest last
	back  heap[newest]
	n     int // messages that stand here
}

// newest orders keys the other way round.
type newest key

func (a newest) before(b newest) bool { return key(b).before(key(a)) }

func (l *lifoLane) add(q *Queue, k key, _ *entry) {
	l.n++
	if l.stack.n == 0 || !k.before(*l.stack.last()) {
		l.stack.push(k)
		return
	}
	l.back.push(newest(k))
	l.tidy(q)
}

func (l *lifoLane) leave(q *Queue, _ key, _ *entry) {
	l.n--
	l.tidy(q)
}

// first forgets the stale mentions before the newest.
func (l *lifoLane) first(q *Queue) (k key, ok bool) {
	for l.stack.n > 0 {
		if k = *l.stack.last(); q.stands(k.seq, &l.place) != nil {
			ok = true
			break
		}
		l.stack.popLast()
	}
	for len(l.back) > 0 {
		if b := key(l.back[0]); q.stands(b.seq, &l.place) != nil {
			if !ok || k.before(b) {
				return b, true
			}
			break
		}
		l.back.pop()
	}
	if !ok {
		return key{}, false
	}
	return k, true
}

func (l *lifoLane) pop(_ *Queue, k key, _ *entry) {
	if len(l.back) > 0 && key(l.back[0]) == k {
		l.back.pop()
	} else {
		l.stack.popLast()
	}
	if l.n--; l.n == 0 {
		l.clear()
	}
}

// eldest forgets the stale mentions before the oldest on the stack.
func (l *lifoLane) eldest(q *Queue) (eldest key, ok bool) {
	for l.stack.n > 0 {
		if eldest = *l.stack.at(0); q.stands(eldest.seq, &l.place) != nil {
			ok = true
			break
		}
		l.stack.pop()
	}
	for _, b := range l.back {
		if k := key(b); q.stands(k.seq, &l.place) != nil && (!ok || k.before(eldest)) {
			eldest, ok = k, true
		}
	}
	return eldest, ok
}

func (l *lifoLane) oldest(q *Queue) (key, bool) { return l.first(q) }
func (l *lifoLane) open() bool                  { return l.n > 0 }
func (l *lifoLane) served(*Queue, *entry)       {}

func (l *lifoLane) clear() { l.stack, l.back = fifo[key]{spare: l.stack.spare}, l.back[:0] }

// tidy rewrites the lane when most of its mentions are stale, or so many are in the
// heap that the stack is the better place.
func (l *lifoLane) tidy(q *Queue) {
	switch {
	case l.n == 0:
		l.clear()
	case l.stack.n+len(l.back) > 2*l.n+slack, len(l.back) > slack+l.stack.n/2:
		all := make([]key, 0, l.stack.n+len(l.back))
		for i := range l.stack.n {
			all = append(all, *l.stack.at(i))
		}
		for _, b := range l.back {
			all = append(all, key(b))
		}
		slices.SortFunc(all, key.compare)
		l.clear()
		for _, k := range slices.Compact(all) {
			if q.stands(k.seq, &l.place) != nil {
				l.stack.push(k)
			}
		}
	}
}

// last returns the item that was pushed last.
func (f *fifo[T]) last() *T { return f.at(f.n - 1) }

// popLast removes it.
func (f *fifo[T]) popLast() {
	f.n--
	if end := f.head + f.n; end%chunkLen == 0 {
		c := f.first + end/chunkLen
		f.spare, f.chunks = f.chunks[c], f.chunks[:c]
	}
}
