// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/session"
)

// ItemOf returns a stored message as an item of a record.
func (q *Core) ItemOf(e *entries.Entry) record.Item {
	it := record.Item{
		GroupKey:      q.Index.Groups.All[e.Group].GroupKey,
		Body:          e.Body(),
		Origin:        e.Origin,
		OrderTime:     e.OrderTime,
		Life:          e.Life,
		LifeInSeconds: e.Flags & entries.FlagSeconds,
		Failures:      e.Failures,
		Level:         e.Level,
		Class:         e.Class,
		Hops:          e.Hops,
		State:         e.UnlockedState(),
	}
	if it.State == entries.Scheduled {
		it.NotBefore = q.Schedule.All[e.StateIndex].At
	}
	return it
}

// Insert stores an item under the sequence number seq.
func (q *Core) Insert(seq entries.SeqNo, it *record.Item, out *machine.Effects) {
	var r *entries.SlabRun
	if it.State == entries.Ready && !q.restore.inSnapshot {
		r = q.Index.RunFor(entries.OrderKey{At: it.OrderTime, Seq: seq}, it.Level)
	}
	e := q.Index.Entries.Put(seq, r)
	*e = entries.Entry{
		Seq:       seq,
		BodyAt:    it.Body.At,
		BodySize:  it.Body.Size,
		OrderTime: it.OrderTime,
		Origin:    it.Origin,
		Group:     q.join(it.GroupKey),
		Life:      it.Life,
		Failures:  it.Failures,
		Level:     it.Level,
		Class:     it.Class,
		Flags:     it.LifeInSeconds,
		Hops:      it.Hops,
	}
	q.noteDue(e, it.State, 1)
	if it.ArrivalTime != 0 {
		q.Index.Entries.SetArrivalTime(seq, e, it.ArrivalTime)
	}
	q.ByState.Bytes += int64(it.Body.Size)
	out.Added = append(out.Added, it.Body)
	switch it.State {
	case entries.Scheduled:
		e.SetState(entries.Scheduled)
		e.StateIndex = q.Schedule.Add(seq, it.NotBefore)
		q.ByState.Scheduled++
		q.SetAside(seq, e)
	case entries.Deferred:
		e.SetState(entries.Deferred)
		q.ByState.Deferred++
		q.SetAside(seq, e)
	default:
		q.MarkReady(seq, e)
	}
}

// MarkReady makes a message ready and lists it in its position.
func (q *Core) MarkReady(seq entries.SeqNo, e *entries.Entry) {
	e.SetState(entries.Ready)
	e.StateIndex = 0
	q.Index.Ready++
	if q.restore.inSnapshot {
		return // the end of the snapshot lists all messages at once
	}
	q.Index.Count(seq, e)
	if q.Config.Sessions {
		q.SessionOf(e).AddReady(&q.Index, seq, e)
		return
	}
	q.Index.Add(e.Key(), e)
}

// UnmarkReady removes a message, which need not be the head, from its list.
func (q *Core) UnmarkReady(seq entries.SeqNo, e *entries.Entry, to entries.State) {
	e.SetState(to)
	q.Index.Ready--
	if q.restore.inSnapshot {
		return
	}
	q.Index.Uncount(e)
	if q.Config.Sessions {
		q.SessionOf(e).RemoveReady(&q.Index, seq, e)
		return
	}
	q.Index.Remove(e.Key(), e)
}

// Remove removes a message in any state.
func (q *Core) Remove(seq entries.SeqNo, e *entries.Entry, out *machine.Effects) {
	switch e.State() {
	case entries.Ready:
		q.UnmarkReady(seq, e, entries.Locked)
	case entries.Deferred:
		q.ByState.Deferred--
	case entries.Scheduled:
		q.Unschedule(e)
		q.ByState.Scheduled--
	case entries.Retrying:
		q.EndWait(e)
	case entries.Locked:
		q.EndLock(e)
	}
	q.Free(seq, e, out)
}

// Free frees the entry of a message that no structure refers to any more.
func (q *Core) Free(seq entries.SeqNo, e *entries.Entry, out *machine.Effects) {
	q.ByState.Bytes -= int64(e.BodySize)
	q.noteDue(e, e.State(), -1)
	out.Freed = append(out.Freed, e.Body())
	if q.Config.Sessions {
		q.SessionOf(e).Discard(seq)
	}
	q.leave(e.Group)
	q.Index.Entries.DropArrivalTime(seq, e)
	if q.HasBeside() {
		q.Reasons.Drop(seq, out)
		q.Saved.Drop(seq, out)
	}
	q.Index.Entries.Delete(seq)
}

// join returns the group of b for one more message.
func (q *Core) join(b entries.GroupKey) uint32 {
	if b == (entries.GroupKey{}) {
		return 0
	}
	n, first := q.Index.Groups.Join(b)
	if !first {
		return n
	}
	g := &q.Index.Groups.All[n]
	if q.Config.Sessions {
		g.SessionNo = q.Sessions.Join(g.Session)
	}
	q.Index.JoinGroup(n)
	return n
}

// leave releases a group that join returned.
func (q *Core) leave(n uint32) {
	if n == 0 {
		return
	}
	session := q.Index.Groups.All[n].SessionNo
	if !q.Index.Groups.Leave(n) {
		return
	}
	if session != 0 {
		q.Sessions.Leave(session)
	}
	q.Index.LeaveGroup(n)
}

// SessionOf returns the session of a message.
func (q *Core) SessionOf(e *entries.Entry) *session.Session { return q.Sessions.Of(&q.Index, e) }

// SetAside adds a message to those of its session that are not ready.
func (q *Core) SetAside(seq entries.SeqNo, e *entries.Entry) {
	if q.Config.Sessions && !q.restore.inSnapshot {
		q.SessionOf(e).SetAside(&q.Index, seq)
	}
}

// Renumber replaces a scheduled message by a ready one.
func (q *Core) Renumber(old, seq entries.SeqNo, it *record.Item, out *machine.Effects) {
	q.Insert(seq, it, out) // first, so that its group is not removed
	q.Remove(old, q.Index.Entries.Get(old), out)
}

// Classification is the new level, class and fair key of a message.
type Classification struct {
	Level ordering.Level
	Class ordering.Class
	Key   string
}

// Reclassify changes the level, class and fair key of a message in any state.
func (q *Core) Reclassify(seq entries.SeqNo, e *entries.Entry, r Classification) {
	ready, locked := e.Is(entries.Ready), e.Is(entries.Locked) && !q.restore.inSnapshot
	if ready {
		q.UnmarkReady(seq, e, entries.Deferred)
	}
	if locked {
		q.Index.DecInFlight(e)
	}
	b := q.Index.Groups.All[e.Group].GroupKey
	b.Key = r.Key
	old := e.Group
	q.noteDue(e, e.State(), -1)
	e.Group = q.join(b) // before leave, so that its session is not removed
	q.noteDue(e, e.State(), 1)
	q.leave(old)
	e.Level, e.Class = r.Level, r.Class
	if locked {
		q.Index.IncInFlight(e)
	}
	if ready {
		q.MarkReady(seq, e)
	}
}

// ReplaceBody replaces the body of a message.
func (q *Core) ReplaceBody(e *entries.Entry, body machine.Ref, out *machine.Effects) {
	out.Freed = append(out.Freed, e.Body())
	out.Added = append(out.Added, body)
	grown := int64(body.Size) - int64(e.BodySize)
	q.ByState.Bytes += grown
	if e.Is(entries.Ready) && !q.restore.inSnapshot { // on replay: most locks are not logged
		q.Index.Resize(e, grown)
	}
	e.SetBody(body)
}

// Unschedule removes a message from the schedule.
func (q *Core) Unschedule(e *entries.Entry) {
	slot := e.StateIndex
	if moved := q.Schedule.Remove(slot); moved != 0 {
		q.Index.Entries.Get(moved).StateIndex = slot
	}
}
