// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/state"
)

// Queue is one queue. It belongs to one goroutine.
type Queue struct {
	core   state.Core
	epoch  uint32
	nonces uint32 // tokens assigned in this epoch

	due  []SeqNo        // buffer of Tick
	seqs []SeqNo        // buffer of Admit
	ids  []lease.IDHash // buffer of Enqueue
}

// New returns an empty queue. A token is valid only in the queue that created it and in
// that queue's epoch: each instance of a queue needs an epoch of its own.
func New(cfg Config, epoch uint32) *Queue {
	return &Queue{core: state.NewCore(cfg), epoch: epoch}
}

// Configure changes the settings and logs them. Messages keep their level, order time
// and position; Sessions and DeadLetterQueue stay as New had them. All settings are in
// force at once, except the order, which may take some calls of Reorder.
func (q *Queue) Configure(now time.Time, cfg Config, out *Effects) {
	q.core.At(now)
	cfg.Sessions, cfg.DeadLetterQueue = q.core.Config.Sessions, q.core.Config.DeadLetterQueue
	q.core.Apply(cfg)
	out.Begin(cfg.KindOf(record.KindConfig, record.KindSettings))
	record.WriteSettings(&out.Effects, cfg)
	out.End()
}

// Config returns the settings. Its slices must not be changed.
func (q *Queue) Config() Config { return q.core.Config }

// Counts returns how many messages there are in each state.
func (q *Queue) Counts() Counts { return q.core.Counts() }

// InForce reports whether the order that was configured last is in force.
func (q *Queue) InForce() bool { return q.core.InForce() }

// Reordering reports whether there is work for Reorder.
func (q *Queue) Reordering() bool { return q.core.Reordering() }

// Reorder continues to apply the order that was configured last. It visits up to about
// most messages and reports whether there is more to do.
func (q *Queue) Reorder(most int) (more bool) { return q.core.Reorder(most) }

// Saturated reports whether the next message is chosen by shares because the queue
// is saturated.
func (q *Queue) Saturated(now time.Time) bool { return q.core.Index.Saturated(q.core.At(now)) }

// logRemoved logs that a message was removed.
func logRemoved(out *machine.Effects, seq SeqNo) {
	out.Extend(record.KindRemoved)
	out.Uint(uint64(seq))
	out.End()
}

// delivery returns a message as a Delivery without a token.
func (q *Queue) delivery(seq SeqNo, e *entries.Entry) Delivery {
	g := &q.core.Index.Groups.All[e.Group]
	d := Delivery{
		Seq:           seq,
		Origin:        e.Origin,
		Body:          e.Body(),
		Level:         e.Level,
		Class:         e.Class,
		State:         e.State(),
		Failures:      e.Failures,
		Hops:          e.Hops,
		FirstDelivery: e.Flags&entries.FlagDelivered == 0,
		Session:       g.Session,
		InSession:     g.InSession,
		Key:           g.Key,
		EnqueuedAt:    entries.Moment(q.core.EnqueuedAt(seq, e)),
	}
	if e.Flags&entries.FlagInherited != 0 {
		d.OrderTime = entries.Moment(e.OrderTime)
	}
	if e.Life != 0 {
		d.ExpiresAt = entries.Moment(e.Expiry())
	}
	if q.core.HasBeside() {
		d.Reason, _ = q.core.Reasons.Get(seq)
		d.Saved, _ = q.core.Saved.Get(seq)
	}
	switch e.State() {
	case Scheduled:
		d.NotBefore = entries.Moment(q.core.Schedule.All[e.StateIndex].At)
	case Retrying:
		d.NotBefore = entries.Moment(q.core.Retries.All[e.StateIndex].At)
	case Locked:
		d.LockedUntil = entries.Moment(q.lockedUntil(e.StateIndex))
		d.Deferred = e.Flags&entries.FlagDeferred != 0
	}
	return d
}
