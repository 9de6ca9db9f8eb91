// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// A message that has failed may wait for its next delivery until a time. It keeps its level,
// its order time and its place; only nobody gets it before. The time is logged. That it is
// over is not: a replay finds that out by the clock.

// Wait makes an unlocked message wait until a time.
func (q *Core) Wait(seq entries.SeqNo, e *entries.Entry, until int64) {
	e.SetState(entries.Retrying)
	e.StateIndex = q.Retries.Add(seq, until)
	q.ByState.Retrying++
	if q.Config.Sessions && !q.restore.inSnapshot { // its end tells the sessions
		q.SessionOf(e).BeginRetry(&q.Index)
	}
}

// EndWait ends the wait of a message. The caller makes it ready, locks it or frees it.
func (q *Core) EndWait(e *entries.Entry) {
	slot := e.StateIndex
	if moved := q.Retries.Remove(slot); moved != 0 {
		q.Index.Entries.Get(moved).StateIndex = slot
	}
	e.StateIndex = 0
	q.ByState.Retrying--
	if q.Config.Sessions && !q.restore.inSnapshot {
		q.SessionOf(e).EndRetry(&q.Index)
	}
}

// LogRetries logs until when the messages from first to last wait.
func (q *Core) LogRetries(first, last entries.SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		if !e.Is(entries.Retrying) {
			continue
		}
		if !began {
			out.Begin(record.KindRetries)
			began = true
		}
		out.Uint(uint64(seq))
		out.Fixed(q.Retries.All[e.StateIndex].At)
	}
	if began {
		out.End()
	}
}

func (q *Core) replayRetries(r *machine.Reader) error {
	for r.Len() > 0 {
		seq, until := record.ReadSeq(r), r.Time()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.Index.Entries.Get(seq)
		if e == nil || e.Is(entries.Scheduled) || e.Is(entries.Deferred) {
			if err := q.absent(seq, "message %d waits for no retry", seq); err != nil {
				return err
			}
			continue
		}
		q.takeOut(seq, e)
		q.Wait(seq, e, until)
	}
	return nil
}

// takeOut removes a message that is to change its state from where it is listed.
func (q *Core) takeOut(seq entries.SeqNo, e *entries.Entry) {
	switch e.State() {
	case entries.Ready:
		q.UnmarkReady(seq, e, entries.Locked)
		q.SetAside(seq, e)
	case entries.Deferred:
		q.ByState.Deferred--
	case entries.Retrying:
		q.EndWait(e)
	case entries.Locked:
		q.EndLock(e)
	}
}

// A lock is volatile, unless its consumer asks for one that survives a restart. Then its
// beginning and each renewal are logged with its token and its end; and its end, if no other
// record shows it.

// EndLock ends the lock of a message. The caller makes it ready or waiting, or frees it.
func (q *Core) EndLock(e *entries.Entry) {
	slot := e.StateIndex
	if l := &q.Locks.All[slot]; l.List == lease.InSession {
		q.Locks.EndIn(&q.Sessions.All[l.Session].Locked, slot)
	} else {
		q.Locks.End(slot)
	}
	e.StateIndex = 0
	q.ByState.Locked--
	if !q.restore.inSnapshot { // its end counts them
		q.Index.DecInFlight(e)
	}
}

// Requeue makes an unlocked message ready, or deferred if it was so before its lock.
func (q *Core) Requeue(seq entries.SeqNo, e *entries.Entry) {
	if e.Flags&entries.FlagDeferred == 0 {
		q.MarkReady(seq, e)
		return
	}
	e.Flags &^= entries.FlagDeferred
	e.SetState(entries.Deferred)
	q.ByState.Deferred++
}

// DurableLock reports whether a locked message has a durable lock.
func (q *Core) DurableLock(e *entries.Entry) bool {
	return q.Locks.All[e.StateIndex].List == lease.Durable
}

// LogLocks logs the durable locks of the messages from first to last.
func (q *Core) LogLocks(first, last entries.SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		if !e.Is(entries.Locked) || !q.DurableLock(e) {
			continue
		}
		if !began {
			out.Begin(record.KindLocks)
			began = true
		}
		record.WriteLock(out, &q.Locks.All[e.StateIndex])
	}
	if began {
		out.End()
	}
}

func (q *Core) replayLocks(r *machine.Reader) error {
	for r.Len() > 0 {
		l := record.ReadLock(r)
		if r.Bad() || q.notYetRestored(l.Seq) {
			continue
		}
		e := q.Index.Entries.Get(l.Seq)
		if e == nil || e.Is(entries.Scheduled) || q.Config.Sessions {
			if err := q.absent(l.Seq, "message %d cannot be locked", l.Seq); err != nil {
				return err
			}
			continue
		}
		deferred := e.Is(entries.Deferred) || e.Is(entries.Locked) && e.Flags&entries.FlagDeferred != 0
		q.takeOut(l.Seq, e)
		if deferred {
			e.Flags |= entries.FlagDeferred
		}
		q.lockAgain(e, l)
	}
	return nil
}

// lockAgain locks a message that is in no list as a record says.
func (q *Core) lockAgain(e *entries.Entry, l lease.Lock) {
	e.SetState(entries.Locked)
	e.Flags |= entries.FlagDelivered
	e.StateIndex = q.Locks.Put(l)
	q.Locks.BeginDurable(e.StateIndex, l.Until)
	q.Locks.Restore(e.StateIndex)
	q.ByState.Locked++
	if !q.restore.inSnapshot {
		q.Index.IncInFlight(e)
	}
}

func (q *Core) replayUnlocked(r *machine.Reader) error {
	for r.Len() > 0 {
		seq := record.ReadSeq(r)
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.Index.Entries.Get(seq)
		if e == nil || !e.Is(entries.Locked) {
			if err := q.absent(seq, "message %d is not locked", seq); err != nil {
				return err
			}
			continue
		}
		q.EndLock(e)
		q.Requeue(seq, e)
	}
	return nil
}
