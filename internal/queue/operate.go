// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// Cancel removes scheduled messages, all of them or none: ErrNotFound if one of them
// does not exist or is not scheduled. A sequence number that occurs twice counts once.
func (q *Queue) Cancel(now time.Time, seqs []SeqNo, out *Effects) error {
	q.core.At(now)
	for _, seq := range seqs {
		if e := q.core.Index.Entries.Get(seq); e == nil || !e.Is(Scheduled) {
			return fmt.Errorf("%w: scheduled message %d", ErrNotFound, seq)
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	out.Begin(record.KindRemoved)
	for _, seq := range seqs {
		if e := q.core.Index.Entries.Get(seq); e != nil {
			q.core.Remove(seq, e, &out.Effects)
			out.Uint(uint64(seq))
		}
	}
	out.End()
	return nil
}

// Remove removes any message that is not locked; ErrNotFound, ErrLocked.
func (q *Queue) Remove(now time.Time, seq SeqNo, out *Effects) error {
	q.core.At(now)
	e := q.core.Index.Entries.Get(seq)
	switch {
	case e == nil:
		return ErrNotFound
	case e.Is(Locked):
		return ErrLocked
	}
	q.core.Remove(seq, e, &out.Effects)
	logRemoved(&out.Effects, seq)
	return nil
}

// Reclassify changes the level, class and fair key of a message in any state. It keeps
// its sequence number and order time; a locked one gets its new position when it is
// unlocked.
func (q *Queue) Reclassify(now time.Time, seq SeqNo, r Classification, out *Effects) error {
	q.core.At(now)
	e := q.core.Index.Entries.Get(seq)
	if e == nil {
		return ErrNotFound
	}
	q.core.Reclassify(seq, e, r)
	out.Begin(record.KindReclassify)
	out.Uint(uint64(seq))
	out.Byte(byte(r.Level))
	out.Byte(byte(r.Class))
	out.String(r.Key)
	out.End()
	return nil
}

// Purge says which messages to remove, and how far that has come. Locked messages stay.
type Purge struct {
	Before  time.Time // enqueued before; zero is all
	Max     int       // zero is all
	Session *string   // only of this session
	Gone    int       // how many were removed so far

	from, high SeqNo // sequence numbers yet to visit; high is zero at the beginning
}

// Purge continues to remove messages in sequence order, of those that existed when it
// began. It visits up to most messages and reports whether it has reached the end.
func (q *Queue) Purge(now time.Time, p *Purge, most int, out *Effects) (done bool) {
	q.core.At(now)
	if p.high == 0 {
		p.high = q.core.Index.Entries.Last
	}
	logged := false
	for ; most > 0 && (p.Max == 0 || p.Gone < p.Max); most-- {
		seq, e := q.core.Index.Entries.Next(p.from)
		if e == nil || seq > p.high {
			done = true
			break
		}
		p.from = seq + 1
		if e.Is(Locked) || !q.inSession(e, p.Session) || !p.Before.IsZero() && q.core.EnqueuedAt(seq, e) >= entries.Nanos(p.Before) {
			continue
		}
		if !logged {
			out.Begin(record.KindRemoved)
			logged = true
		}
		q.core.Remove(seq, e, &out.Effects)
		out.Uint(uint64(seq))
		p.Gone++
	}
	if logged {
		out.End()
	}
	return done || p.Max > 0 && p.Gone == p.Max
}
