// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
)

// Sink is where a consumer's messages go. Its methods are called in order, on the
// shard's goroutine, and must return at once.
type Sink interface {
	// Deliver hands over messages. The slice is the sink's to keep; it may give
	// it back with Consumer.Recycle.
	Deliver(ds []Delivery)
	// Drained answers Drain: nothing more comes until the limit is raised.
	Drained()
	// Ended says that the consumer is over and why.
	Ended(err error)
}

// Consumer takes messages from one queue as far as its limit allows. Its fields
// are owned by the shard.
type Consumer struct {
	shard *Shard
	queue *hostedQueue
	sink  Sink
	take  queue.TakeOptions

	limit          uint64 // messages it takes in all, since it was attached
	deliveredCount uint64 // messages handed out to it
	drained        uint64 // deliveredCount when it last drained
	draining       bool
	void           bool // a drain has voided the limit, and it was not set since
	probing        bool // its drains are nobody's waits
	internal       bool // it is no receiver
	gone           bool

	// next is the limit that holds when the drain under way is done; nil if the
	// limit was not changed since.
	next *uint64
	// again says that another drain was asked for after that.
	again bool
	// leaving says that its Detach waits for settlements that are parked, and
	// waits for how many.
	leaving bool
	waits   int

	recaller    Recaller          // nil if it gives nothing back
	outstanding recall.Deliveries // to a recaller

	// What it has taken passes through these, in order.
	fetching  []*fetch              // locked until the body is read; of a ReceiveAndDelete one
	fetchSize int                   // bytes of their bodies
	held      engine.Held[Delivery] // a mark is the end of a drain; if any waits, on Shard.consumersPending
}

// Attachment is what a consumer asks for.
type Attachment struct {
	ID       ID
	SubQueue SubQueue
	Sink     Sink
	Take     queue.TakeOptions
	// Recall says that the consumer gives back what it has not started, if it is
	// asked to. Its Sink must be a Recaller.
	Recall bool
	// Probing is set by who only looks into the queue, again and again: its
	// drains are not told to an IdleObserver.
	Probing bool
	// Internal is set by what moves messages within the broker: it is no receiver.
	Internal bool
}

// Attach adds a consumer; it is given nothing before Allow. done runs on the
// shard's goroutine.
func (s *Shard) Attach(a Attachment, done func(*Consumer, error)) error {
	return s.push(&task{do: func(s *Shard) error {
		hq, err := s.hostedQueue(a.ID, a.SubQueue)
		if err != nil {
			done(nil, err)
			return nil
		}
		c := &Consumer{shard: s, queue: hq, sink: a.Sink, take: a.Take, probing: a.Probing, internal: a.Internal}
		if a.Recall {
			c.recaller, _ = a.Sink.(Recaller)
		}
		hq.consumers = append(hq.consumers, c)
		done(c, nil)
		return nil
	}, onDropped: func(err error) { done(nil, err) }})
}

// SetDeliveryLimit lets the consumer have messages up to the total-th since it was attached.
func (c *Consumer) SetDeliveryLimit(total uint64) error {
	return c.shard.SubmitReserved(&allowance{c, total})
}

type allowance struct {
	c     *Consumer
	total uint64
}

// Apply implements [engine.Command].
func (a *allowance) Apply(*engine.Tx) {
	c, s := a.c, a.c.shard
	if c.draining && !s.dispatchQueue(c.queue) { // the drain came first, and must not void this
		s.touch(c.queue)
	}
	switch {
	case c.leaving:
	case c.draining: // it waits for bodies, or for the next step
		c.next = &a.total
	default:
		c.limit, c.void = a.total, false
		s.touch(c.queue)
	}
}

// Fail implements [engine.Command].
func (a *allowance) Fail(error) {}

// Drain has the consumer given what there is and then told so; what is left of
// its allowance is void.
func (c *Consumer) Drain() error {
	return c.shard.push(&task{do: func(s *Shard) error {
		c.again = c.draining // the one before waits for bodies
		c.draining = true
		s.touch(c.queue)
		return nil
	}})
}

// Detach removes the consumer. What it was to be given and has not been handed to
// its sink goes back at once, uncounted. Locks on what was delivered stay, except
// that a session goes back, and its messages with it, uncounted.
func (c *Consumer) Detach() error {
	return c.shard.push(&task{do: func(s *Shard) error {
		if c.gone || c.leaving {
			return nil
		}
		if c.waits = s.holdBack(c); c.waits > 0 {
			c.leaving, c.limit = true, 0
			c.draining, c.again, c.next = false, false, nil
			s.withdraw(c)
			return nil
		}
		s.detach(c)
		return nil
	}})
}

func (s *Shard) detach(c *Consumer) {
	if c.gone {
		return // its queue was dropped meanwhile
	}
	s.withdraw(c)
	c.gone = true
	c.queue.entity.used = s.tx.Now() // until now
	if i := slices.Index(c.queue.consumers, c); i >= 0 {
		c.queue.consumers = slices.Delete(c.queue.consumers, i, i+1)
	}
	if c.take.Session != (queue.SessionLock{}) {
		c.queue.q.ReleaseSession(s.tx.Now(), c.take.Session, s.out(c.queue))
		s.collectEffects(c.queue)
	}
}
