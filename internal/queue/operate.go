// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"time"
)

// Cancel removes scheduled messages, all of them or none: ErrNotFound if one of
// them is not there or not scheduled. A number that occurs twice counts once.
func (q *Queue) Cancel(now time.Time, seqs []SeqNo, out *Effects) error {
	q.at(now)
	for _, seq := range seqs {
		if e := q.msgs.get(seq); e == nil || !e.is(Scheduled) {
			return fmt.Errorf("%w: scheduled message %d", ErrNotFound, seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	out.begin(kindGone)
	for _, seq := range seqs {
		if e := q.msgs.get(seq); e != nil {
			q.remove(seq, e, out)
			out.seq(seq)
		}
	}
	out.end()
	return nil
}

// Remove removes any message that is not locked; ErrNotFound, ErrLocked.
func (q *Queue) Remove(now time.Time, seq SeqNo, out *Effects) error {
	q.at(now)
	e := q.msgs.get(seq)
	switch {
	case e == nil:
		return ErrNotFound
	case e.is(Locked):
		return ErrLocked
	}
	q.remove(seq, e, out)
	out.gone(seq)
	return nil
}

// Reclass is what a policy newly thinks of a message.
type Reclass struct {
	Level Level
	Class Class
	Key   string
}

// Reclass changes the level, class and fair key of a message in any state. It
// keeps its number and age; a held one returns to its new place.
func (q *Queue) Reclass(now time.Time, seq SeqNo, r Reclass, out *Effects) error {
	q.at(now)
	e := q.msgs.get(seq)
	if e == nil {
		return ErrNotFound
	}
	q.reclass(seq, e, r)
	out.begin(kindReclass)
	out.seq(seq)
	out.byte(byte(r.Level))
	out.byte(byte(r.Class))
	out.string(r.Key)
	out.end()
	return nil
}

func (q *Queue) reclass(seq SeqNo, e *entry, r Reclass) {
	ready, held := e.is(Ready), e.is(Locked)
	if ready {
		q.unstand(seq, e, Deferred)
	}
	if held {
		q.land(e)
	}
	b := q.groups.all[e.group].belonging
	b.key = r.Key
	old := e.group
	e.group = q.join(b) // before leave, so that its session lives on
	q.leave(old)
	e.level, e.class = r.Level, r.Class
	if held {
		q.takeOff(e)
	}
	if ready {
		q.stand(seq, e)
	}
}

// Purge says what to remove: messages that are not locked.
type Purge struct {
	Before  time.Time // enqueued before; zero is all
	Max     int       // zero is all
	Session *string   // only of this session
}

// Purge removes messages, the lowest numbers first, and returns how many.
func (q *Queue) Purge(now time.Time, p Purge, out *Effects) int {
	q.at(now)
	n := 0
	for seq, e := q.msgs.next(0); e != nil && (p.Max == 0 || n < p.Max); seq, e = q.msgs.next(seq + 1) {
		if e.is(Locked) || !q.inSession(e, p.Session) || !p.Before.IsZero() && q.enqueuedAt(seq, e) >= nanos(p.Before) {
			continue
		}
		if n == 0 {
			out.begin(kindGone)
		}
		q.remove(seq, e, out)
		out.seq(seq)
		n++
	}
	if n > 0 {
		out.end()
	}
	return n
}

// inSession reports whether a message belongs to a session; nil is any.
func (q *Queue) inSession(e *entry, id *string) bool {
	if id == nil {
		return true
	}
	g := &q.groups.all[e.group]
	return g.inSession && g.session == *id
}
