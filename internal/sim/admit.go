// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/policy/admission"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// admit has the gate of a queue decide about what is meant for it, and compares.
func (x *sendOp) admit(o *observer, now time.Time, real *queue.Queue, as []queue.Arrival) ([]queue.SeqNo, error) {
	h, q, d := x.h, o.model(), x.h.entities[o.id].admitter
	evict, refused := d.ask(now, real, as)
	var ms []*modelMessage
	for _, c := range x.send.Copies {
		if a := c.Arrival; c.ID == o.id {
			body := x.send.Bodies[c.Body]
			ms = append(ms, &modelMessage{level: a.Level, class: a.Class, key: a.Key, body: body, size: body.Size()})
		}
	}
	if q.cfg.DuplicateWindow > 0 {
		ms = x.fresh(o.id, q, ms)
	}
	want, refuse := d.decide(now, q, ms)
	if q.clear(now, d.rules) && want.certain(q, ms, evict) {
		if refused != refuse {
			h.w.failf("%v: policy %s: refused %t, want %t", o.place, d.rules.text, refused, refuse)
		}
		if got, want := slices.Sorted(slices.Values(evict)), want.evicted(); !refused && !slices.Equal(got, want) {
			h.w.failf("%v: policy %s: evicts %v, want %v", o.place, d.rules.text, got, want)
		}
	}
	if refused {
		h.w.result.Refused++
		x.want = errThrottled
		return nil, errThrottled
	}
	x.admits = append(x.admits, want)
	for _, seq := range evict {
		m := q.find(seq)
		if m == nil || m.state != queue.Ready || d.rules.class(m.class) == nil || !d.rules.class(m.class).evict {
			h.w.failf("%v: policy %s: evicts message %d", o.place, d.rules.text, seq)
		}
		x.evicted = append(x.evicted, eviction{q, m})
	}
	return evict, nil
}

// evicted returns the numbers of what has to go, sorted: the real gate sums up for
// the whole batch how much of each class goes, so in another order.
func (a *admitCheck) evicted() (seqs []queue.SeqNo) {
	for _, m := range a.evict {
		seqs = append(seqs, m.seq)
	}
	slices.Sort(seqs)
	return seqs
}

// certain reports whether the real admitter must come to the same result. The
// real one does not examine single messages: where bytes are counted, an
// eviction for one message may be enough for the next one too, and it may evict
// more than it needs.
func (a *admitCheck) certain(q *modelQueue, batch []*modelMessage, evict []queue.SeqNo) bool {
	if !a.bytes {
		return true
	}
	classes := map[queue.Class]bool{}
	for _, seq := range append(a.evicted(), evict...) {
		if m := q.find(seq); m != nil {
			classes[m.class] = true
		}
	}
	return len(batch) == 1 && len(classes) <= 1
}

// fresh leaves out what the queue will drop as a duplicate.
func (x *sendOp) fresh(id queueserver.ID, q *modelQueue, ms []*modelMessage) (fresh []*modelMessage) {
	inBatch := map[string]bool{}
	for _, c := range x.send.Copies {
		if c.ID != id {
			continue
		}
		if a := c.Arrival; !q.isDuplicate(x.h.now, a.MessageID) && !inBatch[a.MessageID] {
			fresh = append(fresh, ms[0])
			inBatch[a.MessageID] = a.MessageID != ""
		}
		ms = ms[1:]
	}
	return fresh
}

// ask has the real gate decide.
func (d *modelAdmitter) ask(now time.Time, q *queue.Queue, as []queue.Arrival) (evict []queue.SeqNo, refused bool) {
	d.asks = nil
	for _, a := range as {
		d.asks = append(d.asks, admission.AdmitRequest{
			Classification: policy.Classification{Class: uint8(a.Class), Level: uint8(a.Level), Key: a.Key},
			Bytes:          int64(a.Body.Size),
		})
	}
	decision := d.real.Admit(now, d.asks, depths{q})
	for _, e := range decision.Evict {
		var count, bytes int64
		for seq, body := range q.OldestOf(queue.Class(e.Class)) {
			if count >= e.Count && bytes >= e.Bytes {
				break
			}
			evict = append(evict, seq)
			count++
			bytes += int64(body.Size)
		}
	}
	return evict, !decision.OK()
}

// depths is a queue as a gate sees it.
type depths struct{ q *queue.Queue }

func (d depths) Total() policy.Depth          { return d.AtLeast(0) }
func (d depths) Leaving() float64             { return 0 }
func (d depths) AtLeast(l uint8) policy.Depth { return space(d.q.ReadyFrom(queue.Level(l))) }
func (d depths) OfClass(n uint8) policy.Depth { return space(d.q.ReadyOf(queue.Class(n))) }
func space(count, bytes int64) policy.Depth   { return policy.Depth{Count: count, Bytes: bytes} }
