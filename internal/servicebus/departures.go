// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// A delivery that was never sent returns to its position, whatever ends the
// link, and wherever it is by then.
//
//	loader, outbox ──► settledBacklog (no credit) ──► endpoint (no window) ──► output ──► transport
//	sendSettled        releaseBacklog            unsent                   unsent     sent

// settledDelivery is a delivery received and deleted that waits for credit.
type settledDelivery struct {
	endpoint.Outgoing
	d broker.Delivery
}

// settledCost is what such a delivery takes.
func settledCost(o endpoint.Outgoing) int64 { return int64(len(o.Payload)) + deliveryCost }

// departures are deliveries received and deleted that the transport has not taken yet. A
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
	settled []broker.Delivery
	tokens  []queue.Token
	sources []int // beside tokens, if the link is one to a set
}

// sendSettled sends messages that are gone from their queue.
func (r *receiver) sendSettled(l *loaded) {
	var back, failed []broker.Delivery
	for i := range l.messages {
		p, d := &l.messages[i], l.settled[i]
		o := endpoint.Outgoing{Tag: p.tag[:], Payload: l.buf[p.from:p.to], Settled: true}
		err := endpoint.ErrNoCredit
		if len(r.settledBacklog) == 0 {
			err = r.depart(o, d)
		}
		switch {
		case errors.Is(err, endpoint.ErrNoCredit) && !r.gone:
			o.Tag, o.Payload = slices.Clone(o.Tag), slices.Clone(o.Payload)
			r.c.Counter().Add(settledCost(o))
			r.settledBacklog = append(r.settledBacklog, settledDelivery{o, d})
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

// sendBacklog sends what was waiting for credit, oldest first.
func (r *receiver) sendBacklog() {
	gone := 0 // removed together: a backlog is thousands of them
	defer func() { r.settledBacklog = slices.Delete(r.settledBacklog, 0, gone) }()
	for ; gone < len(r.settledBacklog); gone++ {
		s := &r.settledBacklog[gone]
		err := r.depart(s.Outgoing, s.d)
		switch {
		case errors.Is(err, endpoint.ErrNoCredit), errors.Is(err, endpoint.ErrDetached):
			return
		case err != nil:
			broker.ReturnFailed([]broker.Delivery{s.d})
		}
		r.c.Counter().Release(settledCost(s.Outgoing))
	}
}

// releaseBacklog gives back what was waiting for credit.
func (r *receiver) releaseBacklog() {
	for i := range r.settledBacklog {
		r.c.Counter().Release(settledCost(r.settledBacklog[i].Outgoing))
		r.never.settled = append(r.never.settled, r.settledBacklog[i].d)
	}
	r.settledBacklog = nil
}

// sent and unsent implement tracked.
func (r *receiver) Sent(ref uint64) {
	if r.mode == broker.ReceiveAndDelete {
		r.departing.take(ref)
	}
}

func (r *receiver) Unsent(ref uint64) {
	if r.mode == broker.ReceiveAndDelete {
		r.never.settled = append(r.never.settled, r.departing.take(ref))
	} else if r.locks.has(ref) {
		if len(r.options.sources) > 0 {
			r.never.sources = append(r.never.sources, r.locks.source(ref))
		}
		r.never.tokens = append(r.never.tokens, r.locks.take(ref))
	}
	r.c.unsent[r] = struct{}{}
}

// giveBack returns what never left.
func (r *receiver) giveBack() {
	delete(r.c.unsent, r)
	n := r.never
	r.never = neverLeft{}
	broker.Return(n.settled)
	switch {
	case len(n.tokens) == 0:
	case len(n.sources) > 0:
		r.settleSet(n.tokens, n.sources, broker.Outcome{Disposition: broker.Release}, &settlement{}, 0)
	default:
		r.settle(0, n.tokens, broker.Outcome{Disposition: broker.Release}, ignore)
	}
}
