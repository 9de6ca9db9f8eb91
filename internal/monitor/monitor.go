// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/policy/admission"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Monitor admits messages to one queue and measures how they are served. It is owned by
// the goroutine of the shard.
type monitor struct {
	// changed says that something happened since the last Measure, or was not stored by it;
	// timeDependent that time alone can change the result of Measure. If both are false, the
	// queue is not measured.
	changed, timeDependent bool
	onDue                  func() // called when one of them becomes true

	policy   *policy.Policy
	admitter *admission.Admitter
	limits   bool // the policy has limits of admission
	meter    *objective.Meter
	done     objective.Rate           // messages that were completed or removed
	requests []admission.AdmitRequest // that were admitted last
	// evicted are the messages that are evicted for requests, by class.
	evicted []admission.Eviction

	saturated bool // when last measured

	unnoted bool      // something happened since measurements were stored
	noted   time.Time // when measurements were stored last
}

var _ queueserver.Monitor = (*monitor)(nil)

// definition has the fields of an entity's definition that a monitor needs.
type definition struct {
	Kind  string `json:"kind"`
	Queue struct {
		Policy json.RawMessage `json:"policy"`
	} `json:"queue"`
	Subscription struct {
		Policy json.RawMessage `json:"policy"`
	} `json:"subscription"`
	PolicyRevision int64 `json:"policyRevision"`
}

// New returns how a shard creates monitors: from the definition of an entity, in JSON,
// and from the measurements that an earlier process stored. A topic has none.
// Measurements that cannot be read are dropped, and log says so.
func New(log *slog.Logger) queueserver.NewMonitor {
	return func(name string, meta, note []byte) (queueserver.Monitor, error) {
		var d definition
		if err := json.Unmarshal(meta, &d); err != nil {
			return nil, err
		}
		raw := d.Queue.Policy
		switch d.Kind {
		case "topic":
			return nil, nil
		case "subscription":
			raw = d.Subscription.Policy
		}
		p, err := policy.ParseStored(raw)
		if err != nil {
			return nil, err
		}
		p.Revision = d.PolicyRevision
		m := newMonitor(p)
		if note != nil {
			m.changed = true // measure what was recovered
		}
		if len(note) > 0 {
			if err := m.meter.Restore(note); err != nil {
				log.Warn("measurements are lost", "entity", name, "err", err)
			}
		}
		return m, nil
	}
}

func newMonitor(p *policy.Policy) *monitor {
	return &monitor{
		policy: p, admitter: admission.NewAdmitter(p), limits: hasLimits(p), meter: objective.NewMeter(measured(p)),
		onDue: func() {},
	}
}

// OnDue implements queueserver.Monitor.
func (m *monitor) OnDue(fn func()) {
	m.onDue = fn
	if m.Due() {
		fn()
	}
}

// Due implements queueserver.Monitor.
func (m *monitor) Due() bool { return m.changed || m.timeDependent }

// Memory implements queueserver.Monitor.
func (m *monitor) Memory() int64 { return m.admitter.Memory() }

// Revision implements queueserver.Monitor.
func (m *monitor) Revision() int64 { return m.policy.Revision }

// Replace implements queueserver.Monitor. The measurements stay with the names of the
// classes.
func (m *monitor) Replace(next queueserver.Monitor) {
	p := next.(*monitor).policy
	if p.Revision == m.policy.Revision {
		return // nothing has changed
	}
	m.policy, m.limits = p, hasLimits(p)
	m.admitter.Replace(p)
	m.meter.Configure(measured(p))
	m.touch()
}

// measured returns the classes of a policy for the meter.
func measured(p *policy.Policy) []objective.Class {
	var cs []objective.Class
	for _, c := range p.Classes {
		cs = append(cs, objective.Class{
			Name: c.Name, Wait: c.Objective.Wait, Target: c.Objective.Target, Expected: c.ExpectedRate.PerSecond(),
		})
	}
	return cs
}

// hasLimits reports whether the admitter has anything to do.
func hasLimits(p *policy.Policy) bool {
	limited := p.Watermarks != (policy.Depth{}) || p.KeyDefaults.Rate != (policy.Rate{})
	for _, c := range p.Classes {
		limited = limited || c.Rate != (policy.Rate{}) || c.MaxMessages > 0 || c.MaxBytes > 0
	}
	for _, k := range p.Keys {
		limited = limited || k.Rate != (policy.Rate{})
	}
	return limited
}

func (m *monitor) touch() {
	m.unnoted = true
	if !m.changed {
		m.changed = true
		m.onDue()
	}
}

// Admit implements queueserver.Observer.
func (m *monitor) Admit(now time.Time, q *queue.Queue, as []queue.Arrival) ([]queue.SeqNo, error) {
	m.touch()
	m.meter.Count(now, objective.Send, 1)
	m.requests, m.evicted = m.requests[:0], m.evicted[:0]
	if !m.limits {
		return nil, nil
	}
	for i := range as {
		a := &as[i]
		m.requests = append(m.requests, admission.AdmitRequest{
			Classification: policy.Classification{Class: uint8(a.Class), Level: uint8(a.Level), Key: a.Key},
			Bytes:          int64(a.Body.Size) + queue.MessageOverhead,
		})
	}
	d := m.admitter.Admit(now, m.requests, depths{q, m.done.Estimate(now)})
	if r := d.Refusal; r != nil {
		m.meter.Refused(now, r.Number, len(as))
		return nil, &queueserver.ThrottledError{Class: r.Class, Reason: r.Reason, RetryAfter: r.RetryAfter.Seconds()}
	}
	var seqs []queue.SeqNo
	for _, e := range d.Evict {
		before := len(seqs)
		seqs = toEvict(q, e, seqs)
		m.evicted = append(m.evicted, admission.Eviction{Class: e.Class, Depth: policy.Depth{Count: int64(len(seqs) - before)}})
	}
	return seqs, nil
}

// AdmitCanceled implements queueserver.Observer: it refunds the rates of messages that
// were admitted and are not stored.
func (m *monitor) AdmitCanceled(time.Time, []queue.Arrival) {
	m.admitter.Refund(m.requests)
	m.requests, m.evicted = m.requests[:0], m.evicted[:0]
}

// toEvict appends the oldest messages of a class until enough would be removed.
func toEvict(q *queue.Queue, e admission.Eviction, seqs []queue.SeqNo) []queue.SeqNo {
	var removed policy.Depth
	for seq, body := range q.OldestOf(queue.Class(e.Class)) {
		if removed.Count >= e.Count && removed.Bytes >= e.Bytes {
			break
		}
		seqs = append(seqs, seq)
		removed.Count++
		removed.Bytes += int64(body.Size) + queue.MessageOverhead
	}
	return seqs
}

// depths implements admission.Depths for a queue.
type depths struct {
	q       *queue.Queue
	leaving float64
}

func (d depths) Total() policy.Depth               { return d.AtLeast(0) }
func (d depths) Leaving() float64                  { return d.leaving }
func (d depths) AtLeast(level uint8) policy.Depth  { return depth(d.q.ReadyFrom(queue.Level(level))) }
func (d depths) OfClass(number uint8) policy.Depth { return depth(d.q.ReadyOf(queue.Class(number))) }

// depth counts bytes as the quota of a queue does.
func depth(count, bytes int64) policy.Depth {
	return policy.Depth{Count: count, Bytes: bytes + count*queue.MessageOverhead}
}

// Arrived implements queueserver.Observer.
func (m *monitor) Arrived(now time.Time, as []queue.Arrival) {
	for _, e := range m.evicted {
		m.meter.Evicted(now, e.Class, int(e.Count))
	}
	for from := 0; from < len(as); {
		to := from + 1
		for to < len(as) && as[to].Class == as[from].Class {
			to++
		}
		m.meter.Arrived(now, uint8(as[from].Class), to-from)
		from = to
	}
}

// Delivered implements queueserver.Observer.
func (m *monitor) Delivered(now time.Time, d *queue.Delivery) {
	m.touch()
	m.meter.Count(now, objective.Receive, 1)
	if d.FirstDelivery {
		m.meter.Delivered(now, uint8(d.Class), d.EnqueuedAt)
	}
	if d.Token == (queue.Token{}) { // received and deleted
		m.meter.Settled(now, uint8(d.Class), d.EnqueuedAt, now)
		m.done.Add(now, 1)
	}
}

// Settled implements queueserver.Observer.
func (m *monitor) Settled(now time.Time, v queueserver.Disposition, s queue.Settled) {
	m.touch()
	m.meter.Count(now, objective.Settle, 1)
	if v == queueserver.Complete {
		m.meter.Settled(now, uint8(s.Class), s.EnqueuedAt, s.LockedAt)
		m.done.Add(now, 1)
	}
}

// DeadLettered implements queueserver.Observer.
func (m *monitor) DeadLettered(now time.Time, d *queue.DeadLetter) {
	m.touch()
	m.meter.DeadLettered(now, uint8(d.Class))
	if d.Reason == queue.ReasonExpired {
		m.meter.Expired(now, uint8(d.Class))
	}
	if d.FirstDelivery {
		m.meter.Undelivered(now, uint8(d.Class))
	}
}

// Expired implements queueserver.Observer.
func (m *monitor) Expired(now time.Time, e queue.Expired) {
	m.touch()
	m.meter.Expired(now, uint8(e.Class))
	if e.FirstDelivery {
		m.meter.Undelivered(now, uint8(e.Class))
	}
}

// Idle implements queueserver.IdleObserver.
func (m *monitor) Idle(now time.Time) { m.Count(now, objective.EmptyWait, 1) }

// Count implements queueserver.Monitor.
func (m *monitor) Count(now time.Time, o objective.Operation, n int) {
	m.touch()
	m.meter.Count(now, o, n)
}
