// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// What was never sent nobody has got: it goes back to its place, whatever ends the
// link, and wherever it is by then.
//
//	loader, outbox ──► stash (no credit) ──► endpoint (no window) ──► output ──► transport
//	sendForGood        unstashAll            unsent                   unsent     sent

// stashed is a delivery taken for good that waits for credit.
type stashed struct {
	endpoint.Outgoing
	d broker.Delivery
}

// stashCost is what such a delivery takes.
func stashCost(o endpoint.Outgoing) int64 { return int64(len(o.Payload)) + deliveryCost }

// departures are deliveries taken for good that the transport has not taken yet. A
// delivery is known by its place in the table.
type departures struct {
	all  []broker.Delivery
	free []uint64
}

func (t *departures) put(d broker.Delivery) (ref uint64) {
	if n := len(t.free); n > 0 {
		ref, t.free = t.free[n-1], t.free[:n-1]
		t.all[ref] = d
		return ref
	}
	t.all = append(t.all, d)
	return uint64(len(t.all) - 1)
}

func (t *departures) take(ref uint64) broker.Delivery {
	d := t.all[ref]
	t.all[ref] = broker.Delivery{} // the message must not live on in it
	t.free = append(t.free, ref)
	if len(t.free) == len(t.all) && len(t.free) > maxSpareEntries {
		*t = departures{}
	}
	return d
}

// neverLeft is what the endpoint had been given when the link ended.
type neverLeft struct {
	forGood []broker.Delivery
	tokens  []queue.Token
	sources []int // beside tokens, if the link is one to a set
}

// sendForGood sends messages that are gone from their queue.
func (r *receiver) sendForGood(l *loaded) {
	var back, failed []broker.Delivery
	for i := range l.parcels {
		p, d := &l.parcels[i], l.forGood[i]
		o := endpoint.Outgoing{Tag: p.tag[:], Payload: l.buf[p.from:p.to], Settled: true}
		err := endpoint.ErrNoCredit
		if len(r.stash) == 0 {
			err = r.depart(o, d)
		}
		switch {
		case errors.Is(err, endpoint.ErrNoCredit) && !r.gone:
			o.Tag, o.Payload = slices.Clone(o.Tag), slices.Clone(o.Payload)
			r.c.Counter().Add(stashCost(o))
			r.stash = append(r.stash, stashed{o, d})
		case errors.Is(err, endpoint.ErrTooLarge):
			failed = append(failed, d)
		case err != nil:
			back = append(back, d)
		}
	}
	broker.Return(back)
	broker.ReturnFailed(failed)
}

// depart hands a delivery to the endpoint, which tells what becomes of it.
func (r *receiver) depart(o endpoint.Outgoing, d broker.Delivery) error {
	o.Ref = r.departing.put(d)
	err := r.link.Send(o)
	if err != nil {
		r.departing.take(o.Ref)
	}
	return err
}

// unstash sends what was waiting for credit, oldest first.
func (r *receiver) unstash() {
	for len(r.stash) > 0 {
		s := &r.stash[0]
		err := r.depart(s.Outgoing, s.d)
		switch {
		case errors.Is(err, endpoint.ErrNoCredit), errors.Is(err, endpoint.ErrDetached):
			return
		case err != nil:
			broker.ReturnFailed([]broker.Delivery{s.d})
		}
		r.c.Counter().Release(stashCost(s.Outgoing))
		r.stash = slices.Delete(r.stash, 0, 1)
	}
}

// unstashAll gives back what was waiting for credit.
func (r *receiver) unstashAll() {
	for i := range r.stash {
		r.c.Counter().Release(stashCost(r.stash[i].Outgoing))
		r.never.forGood = append(r.never.forGood, r.stash[i].d)
	}
	r.stash = nil
}

// sent and unsent implement tracked.
func (r *receiver) Sent(ref uint64) {
	if r.mode == broker.ReceiveAndDelete {
		r.departing.take(ref)
	}
}

func (r *receiver) Unsent(ref uint64) {
	if r.mode == broker.ReceiveAndDelete {
		r.never.forGood = append(r.never.forGood, r.departing.take(ref))
	} else {
		if len(r.wishes.sources) > 0 {
			r.never.sources = append(r.never.sources, r.locks.source(ref))
		}
		r.never.tokens = append(r.never.tokens, r.locks.take(ref))
	}
	r.c.unsent[r] = struct{}{}
}

// giveBack returns what never left.
func (r *receiver) giveBack() {
	n := r.never
	r.never = neverLeft{}
	broker.Return(n.forGood)
	switch {
	case len(n.tokens) == 0:
	case len(n.sources) > 0:
		r.settleSet(n.tokens, n.sources, broker.Outcome{Verdict: broker.Release}, &settlement{}, 0)
	default:
		r.settle(0, n.tokens, broker.Outcome{Verdict: broker.Release}, ignore)
	}
}
