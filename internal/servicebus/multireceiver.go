// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// brokerReceiver is the broker's end of a receiver: one queue, or several as if they were
// one.
type brokerReceiver interface {
	SetDeliveryLimit(total uint64)
	Drain()
	Close()
}

// paths are those that the receiver takes messages from.
func (r *receiver) Paths() []string {
	if len(r.options.sources) > 0 {
		return r.options.sources
	}
	return []string{r.path}
}

// check asks for the right to listen at every queue that the receiver takes messages
// from. One over several queues ends as a whole when a right to one of them ends:
// its user must learn that there is a queue it gets nothing from any more.
func (r *receiver) Check() error {
	for i, path := range r.Paths() {
		id := uint64(0)
		switch from := r.brokerReceiver().(type) {
		case *broker.Receiver:
			id = from.ID()
		case *broker.MultiReceiver:
			id = from.ID(i)
		}
		if id != 0 { // there is none while it is opened
			if err := r.c.IsStill(path, id); err != nil {
				return err
			}
		}
		if err := r.c.Require(access.Listen, path); err != nil {
			return err
		}
	}
	return nil
}

// open opens the broker's end as the peer asks.
func (r *receiver) open(ctx context.Context, o broker.ReceiverOptions) (brokerReceiver, error) {
	if len(r.options.sources) == 0 {
		from, err := r.c.broker.OpenReceiver(ctx, r.path, o)
		if err != nil {
			return nil, err
		}
		return from, nil
	}
	if r.options.sources[0] != r.path {
		return nil, endpoint.Errorf(names.ArgumentError, "The first of %s is not the address of the link.", names.Sources)
	}
	set, err := r.c.broker.OpenSet(ctx, r.options.sources, r.options.rule, o, setSink{r})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// setSink takes what a set delivers, on the set's goroutine.
type setSink struct{ r *receiver }

func (k setSink) Deliver(source int, d broker.Delivery) {
	k.r.c.loader.add(work{to: k.r, deliveries: []broker.Delivery{d}, source: source})
}
func (k setSink) Drained()        { k.r.Drained() }
func (k setSink) Ended(err error) { k.r.Ended(err) }

// settle decides about messages of one of the receiver's sources.
func (r *receiver) settle(source int, tokens []queue.Token, o broker.Outcome, done func([]error)) {
	switch from := r.brokerReceiver().(type) {
	case *broker.Receiver:
		from.Settle(tokens, o, done)
	case *broker.MultiReceiver:
		from.Settle(source, tokens, o, done)
	}
}

// settleSet settles a disposition on a set, source by source. As s is the answer
// for all of them, each part gets one of its own. The charge is given back when all are
// done.
func (r *receiver) settleSet(tokens []queue.Token, sources []int, o broker.Outcome, s *settlement, charge int64) {
	distinct := slices.Compact(slices.Sorted(slices.Values(sources)))
	var left atomic.Int64
	left.Store(int64(len(distinct)))
	for _, source := range distinct {
		part := &settlement{disposition: s.disposition}
		var own []queue.Token
		for i := range tokens {
			if sources[i] == source {
				own = append(own, tokens[i])
				if len(s.ids) > 0 {
					part.ids = append(part.ids, s.ids[i])
				}
			}
		}
		done := func(errs []error) {
			if left.Add(-1) == 0 && charge > 0 {
				r.c.Memory().Release(charge)
			}
			if len(s.ids) > 0 {
				part.errs = errs
				r.c.Post(azure.Event{To: r, Kind: eventSettled, Value: part})
			}
		}
		r.settle(source, own, o, done)
	}
}

// source returns the path of the queue that a message of a set came from; empty
// for a plain receiver.
func (r *receiver) source(i int) string {
	if set, ok := r.brokerReceiver().(*broker.MultiReceiver); ok {
		return set.Source(i)
	}
	return ""
}
