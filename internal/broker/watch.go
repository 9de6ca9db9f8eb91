// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// watch stands at the door of one queue: it turns arrivals away as the policy
// asks, and measures what becomes of the others. All of it but the two flags is
// owned by the shard's goroutine.
type watch struct {
	// changed says that something happened since the last look, or was not
	// written down by it; restless that
	// time alone can change what a look finds. A queue of which neither is true
	// costs nothing.
	changed, restless atomic.Bool

	policy *policy.Policy
	gate   *policy.Admitter
	gated  bool // the policy turns something away
	meter  *objective.Meter
	done   objective.Rate        // messages that left for good
	asks   []policy.AdmitRequest // that were let in last
	// evicted are those that make room for asks, by class.
	evicted []policy.Eviction

	saturated bool // when last looked at

	unnoted bool      // something happened since the last note
	noted   time.Time // when the last note was written
}

var _ shard.IdleObserver = (*watch)(nil)

func newWatch(p *policy.Policy) *watch {
	return &watch{policy: p, gate: policy.NewAdmitter(p), gated: turnsAway(p), meter: objective.NewMeter(measured(p))}
}

// replace changes the policy. What was measured stays with the names of the
// classes.
func (w *watch) replace(p *policy.Policy) {
	w.policy, w.gated = p, turnsAway(p)
	w.gate.Replace(p)
	w.meter.Configure(measured(p))
	w.touch()
}

// restore brings back what an earlier process measured.
func (w *watch) restore(note []byte) error {
	w.changed.Store(true) // look at what was recovered
	if len(note) == 0 {
		return nil
	}
	return w.meter.Restore(note)
}

// measured returns what the meter must know of a policy's classes.
func measured(p *policy.Policy) []objective.Class {
	var cs []objective.Class
	for _, c := range p.Classes {
		cs = append(cs, objective.Class{
			Name: c.Name, Wait: c.Objective.Wait, Share: c.Objective.Target, Expected: c.ExpectedRate.PerSecond(),
		})
	}
	return cs
}

// turnsAway reports whether there is anything for a gate to do.
func turnsAway(p *policy.Policy) bool {
	limited := p.Watermarks != (policy.Depth{}) || p.KeyDefaults.Rate != (policy.Rate{})
	for _, c := range p.Classes {
		limited = limited || c.Rate != (policy.Rate{}) || c.MaxMessages > 0 || c.MaxBytes > 0
	}
	for _, k := range p.Keys {
		limited = limited || k.Rate != (policy.Rate{})
	}
	return limited
}

// watchOver puts a watch at a new queue, before anybody knows of it.
func (b *Broker) watchOver(n *node) error {
	if n.kind == KindTopic {
		return nil
	}
	n.watch = newWatch(n.def.Load().worth.policy)
	return b.within(n, func(tx *shard.Tx) error { return tx.Observe(n.id, shard.Main, n.watch) })
}

// rewatch makes a changed policy hold for what arrives from now on.
func (b *Broker) rewatch(n *node, p *policy.Policy) error {
	if n.watch == nil {
		return nil
	}
	return b.within(n, func(*shard.Tx) error { n.watch.replace(p); return nil })
}

// within runs fn on the shard of a node. A change that was begun is not called
// off half way, so there is no context to end it.
func (b *Broker) within(n *node, fn func(*shard.Tx) error) error {
	answer := make(chan error, 1)
	if err := n.shard.Post(fn, func(err error) { answer <- err }); err != nil {
		return err
	}
	return <-answer
}

func (w *watch) touch() {
	w.unnoted = true
	if !w.changed.Load() {
		w.changed.Store(true)
	}
}

// Admit implements shard.Observer.
func (w *watch) Admit(now time.Time, q *queue.Queue, as []queue.Arrival) ([]queue.SeqNo, error) {
	w.touch()
	w.meter.Count(now, objective.Send, 1)
	w.asks, w.evicted = w.asks[:0], w.evicted[:0]
	if !w.gated {
		return nil, nil
	}
	for i := range as {
		a := &as[i]
		w.asks = append(w.asks, policy.AdmitRequest{
			Classification: policy.Classification{Class: uint8(a.Class), Level: uint8(a.Level), Key: a.Key},
			Bytes:          int64(a.Body.Size) + queue.MessageOverhead,
		})
	}
	d := w.gate.Admit(now, w.asks, depths{q, w.done.Estimate(now)})
	if r := d.Refusal; r != nil {
		w.meter.Refused(now, r.Number, len(as))
		return nil, &ThrottledError{Class: r.Class, Reason: r.Reason, RetryAfter: r.RetryAfter.Seconds()}
	}
	var seqs []queue.SeqNo
	for _, e := range d.Evict {
		before := len(seqs)
		seqs = victims(q, e, seqs)
		w.evicted = append(w.evicted, policy.Eviction{Class: e.Class, Depth: policy.Depth{Count: int64(len(seqs) - before)}})
	}
	return seqs, nil
}

// Declined implements shard.Observer: what was let in and is not stored has used
// up nothing.
func (w *watch) Declined(time.Time, []queue.Arrival) {
	w.gate.Refund(w.asks)
	w.asks, w.evicted = w.asks[:0], w.evicted[:0]
}

// victims appends the oldest messages of a class until enough would be gone.
func victims(q *queue.Queue, e policy.Eviction, seqs []queue.SeqNo) []queue.SeqNo {
	var gone policy.Depth
	for seq, body := range q.OldestOf(queue.Class(e.Class)) {
		if gone.Count >= e.Count && gone.Bytes >= e.Bytes {
			break
		}
		seqs = append(seqs, seq)
		gone.Count++
		gone.Bytes += int64(body.Size) + queue.MessageOverhead
	}
	return seqs
}

// depths is a queue as a gate sees it.
type depths struct {
	q       *queue.Queue
	leaving float64
}

func (d depths) Total() policy.Depth               { return d.AtLeast(0) }
func (d depths) Leaving() float64                  { return d.leaving }
func (d depths) AtLeast(level uint8) policy.Depth  { return depth(d.q.ReadyFrom(queue.Level(level))) }
func (d depths) OfClass(number uint8) policy.Depth { return depth(d.q.ReadyOf(queue.Class(number))) }

// depth counts in bytes what the quota of a queue counts.
func depth(count, bytes int64) policy.Depth {
	return policy.Depth{Count: count, Bytes: bytes + count*queue.MessageOverhead}
}

// Arrived implements shard.Observer.
func (w *watch) Arrived(now time.Time, as []queue.Arrival) {
	for _, e := range w.evicted {
		w.meter.Evicted(now, e.Class, int(e.Count))
	}
	for from := 0; from < len(as); {
		to := from + 1
		for to < len(as) && as[to].Class == as[from].Class {
			to++
		}
		w.meter.Arrived(now, uint8(as[from].Class), to-from)
		from = to
	}
}

// Delivered implements shard.Observer.
func (w *watch) Delivered(now time.Time, d *queue.Delivery) {
	w.touch()
	w.meter.Count(now, objective.Receive, 1)
	if d.First {
		w.meter.Delivered(now, uint8(d.Class), d.EnqueuedAt)
	}
	if d.Token == (queue.Token{}) { // taken for good
		w.meter.Settled(now, uint8(d.Class), d.EnqueuedAt, now)
		w.done.Add(now, 1)
	}
}

// Settled implements shard.Observer.
func (w *watch) Settled(now time.Time, v shard.Verdict, s queue.Settled) {
	w.touch()
	w.meter.Count(now, objective.Settle, 1)
	if v == shard.Complete {
		w.meter.Settled(now, uint8(s.Class), s.EnqueuedAt, s.LockedAt)
		w.done.Add(now, 1)
	}
}

// Died implements shard.Observer.
func (w *watch) Died(now time.Time, d *queue.Dead) {
	w.touch()
	w.meter.Died(now, uint8(d.Class))
	if d.Reason == queue.ReasonExpired {
		w.meter.Expired(now, uint8(d.Class))
	}
	if d.First {
		w.meter.Undelivered(now, uint8(d.Class))
	}
}

// Expired implements shard.Observer.
func (w *watch) Expired(now time.Time, e queue.Expired) {
	w.touch()
	w.meter.Expired(now, uint8(e.Class))
	if e.First {
		w.meter.Undelivered(now, uint8(e.Class))
	}
}

// Idle implements shard.IdleObserver.
func (w *watch) Idle(now time.Time) { w.count(now, objective.EmptyWait, 1) }

// count counts operations that do not show in what happens to messages.
func (w *watch) count(now time.Time, o objective.Operation, n int) {
	w.touch()
	w.meter.Count(now, o, n)
}
