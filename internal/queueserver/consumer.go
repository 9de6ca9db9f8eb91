// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
)

// Sink is where a consumer's messages go. Its methods are called in order, on the
// shard's goroutine, and must return at once.
type Sink interface {
	// Deliver delivers messages. The sink owns the slice, and may return it with
	// Shard.Recycle.
	Deliver(ds []Delivery)
	// Drained answers Drain: nothing more is delivered until the limit is raised.
	Drained()
	// Ended says that the consumer has ended, and why.
	Ended(err error)
}

// consumer takes messages from one queue as far as its limit allows.
type consumer struct {
	id    ConsumerID
	queue *hostedQueue
	sink  Sink
	take  queue.TakeOptions

	limit          uint64 // messages it takes in all, since it was attached
	deliveredCount uint64 // messages taken for it
	drained        uint64 // deliveredCount when it last drained
	draining       bool   // it is in hostedQueue.drains
	offered        bool   // it is in hostedQueue.credits
	recallable     bool   // it is in hostedQueue.recallable
	void           bool   // a drain has voided the limit, and it was not set since
	probing        bool   // its drains do not count as waits
	internal       bool   // it does not count as a receiver
	gone           bool
	granting       bool  // its session was granted, and it does not know yet
	refusal        error // why it is not told of that session; nil if it is

	// next is the limit that holds when the drain under way is done; nil if the
	// limit was not changed since.
	next *uint64
	// again says that another drain was asked for after that.
	again bool
	// leaving says that its Detach waits for its settlements that are parked, and
	// waits how many there are.
	leaving bool
	waits   int

	recaller    Recaller          // nil if its deliveries are not recalled
	outstanding recall.Deliveries // to a recaller
	// request is the recall of a delivery of another consumer for this one, which has
	// credit; its zero value is none.
	request recall.Request[ConsumerID]

	// What it has taken passes through these, in order.
	fetching  []*fetch              // locked until the body is read; of a ReceiveAndDelete one
	fetchSize int                   // bytes of their bodies
	held      engine.Held[Delivery] // a mark is the end of a drain; if any waits, on Shard.consumersPending
}

// ConsumerID names a consumer of a shard. No two consumers of a shard have the same; zero
// is none.
type ConsumerID uint64

// Attachment is what a consumer asks for. It is plain data: the sink is registered
// beside it, under the id of the consumer.
type Attachment struct {
	Consumer ConsumerID // of AddSink
	ID       ID
	SubQueue SubQueue
	Take     queue.TakeOptions
	// Recall says that the consumer releases what it has not started, if it is
	// recalled. Its sink must be a Recaller.
	Recall bool
	// Probing says that the consumer only looks into the queue, again and again. An
	// IdleObserver does not learn of its drains.
	Probing bool
	// Internal says that the consumer moves messages within the broker. It does not
	// count as a receiver.
	Internal bool
}

// sinks are the sinks that were added and not attached yet.
type sinks struct {
	mu    sync.Mutex
	last  ConsumerID
	added map[ConsumerID]Sink
}

// AddSink registers the sink of a consumer that is about to be attached, and returns the
// id of the consumer. It may be called from any goroutine. A consumer whose attachment
// fails does not exist any more.
func (s *Shard) AddSink(sink Sink) ConsumerID {
	s.sinks.mu.Lock()
	defer s.sinks.mu.Unlock()
	if s.sinks.added == nil {
		s.sinks.added = make(map[ConsumerID]Sink)
	}
	s.sinks.last++
	s.sinks.added[s.sinks.last] = sink
	return s.sinks.last
}

// take removes a sink from those that are not attached.
func (x *sinks) take(id ConsumerID) Sink {
	x.mu.Lock()
	defer x.mu.Unlock()
	sink := x.added[id]
	delete(x.added, id)
	return sink
}

// Attach adds a consumer; nothing is delivered before SetDeliveryLimit. done runs on the
// shard's goroutine.
func (s *Shard) Attach(a Attachment, done func(error)) error {
	fail := func(err error) {
		s.sinks.take(a.Consumer)
		done(err)
	}
	err := s.push(&task{do: func(s *Shard) error {
		hq, err := s.hostedQueue(a.ID, a.SubQueue)
		if err != nil {
			fail(err)
			return nil
		}
		s.attach(hq, s.sinks.take(a.Consumer), &a)
		done(nil)
		return nil
	}, onDropped: fail})
	if err != nil {
		s.sinks.take(a.Consumer)
	}
	return err
}

// attach adds a consumer to those of a queue.
func (s *Shard) attach(hq *hostedQueue, sink Sink, a *Attachment) *consumer {
	c := &consumer{id: a.Consumer, queue: hq, sink: sink, take: a.Take, probing: a.Probing, internal: a.Internal}
	if a.Recall {
		c.recaller, _ = sink.(Recaller)
	}
	hq.consumers = append(hq.consumers, c)
	s.consumers[c.id] = c
	return c
}

// An operation that names a consumer which has ended does nothing.

// SetDeliveryLimit lets a consumer have messages up to the total-th since it was
// attached.
func (s *Shard) SetDeliveryLimit(id ConsumerID, total uint64) error {
	_, err := s.PostDeliveryLimit(id, total)
	return err
}

// PostDeliveryLimit is SetDeliveryLimit for a caller that may change the limit while it is
// on its way: a peer can change its mind more often than a shard can look.
func (s *Shard) PostDeliveryLimit(id ConsumerID, total uint64) (*DeliveryLimit, error) {
	o := &DeliveryLimit{s: s, id: id, total: total}
	return o, s.SubmitReserved(o)
}

// DeliveryLimit is a limit on its way to the shard.
type DeliveryLimit struct {
	s  *Shard
	id ConsumerID

	mu      sync.Mutex
	total   uint64 // guarded by mu
	applied bool   // guarded by mu
}

// Change sets another limit in place of one that was not applied yet, and reports whether
// that was so. It may be called from any goroutine.
func (o *DeliveryLimit) Change(total uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.applied {
		o.total = total
	}
	return !o.applied
}

// take returns the limit, which does not change any more.
func (o *DeliveryLimit) take() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.applied = true
	return o.total
}

// Apply implements [engine.Command].
func (o *DeliveryLimit) Apply(*engine.Tx) {
	total := o.take()
	s, c := o.s, o.s.consumers[o.id]
	if c == nil {
		return
	}
	if c.draining && !s.dispatchQueue(c.queue) { // the drain came first, and must not void this
		s.touch(c.queue)
	}
	switch {
	case c.leaving:
	case c.draining: // it waits for bodies, or for the next step
		c.next = &total
	default:
		c.limit, c.void = total, false
		c.queue.credits.offer(c)
		s.touch(c.queue)
	}
}

// Fail implements [engine.Command].
func (o *DeliveryLimit) Fail(error) {}

// Drain delivers to a consumer what there is, up to its limit, and then calls Drained of
// its sink. The rest of its limit is void.
func (s *Shard) Drain(id ConsumerID) error {
	return s.withConsumer(id, func(s *Shard, c *consumer) {
		if c.again = c.draining; !c.again { // else the one before waits for bodies
			c.queue.drains = append(c.queue.drains, c)
		}
		c.draining = true
		s.touch(c.queue)
	})
}

// Detach removes a consumer. Deliveries that its sink has not got are returned, and not
// counted. Locks on what was delivered stay. A session is released: its messages are
// returned, and not counted.
func (s *Shard) Detach(id ConsumerID) error {
	return s.withConsumer(id, func(s *Shard, c *consumer) {
		if c.leaving {
			return
		}
		if c.waits > 0 {
			c.leaving, c.limit = true, 0
			c.draining, c.again, c.next = false, false, nil
			s.withdraw(c)
			return
		}
		s.detach(c)
	})
}

// withConsumer has do run on the shard's goroutine for a consumer, unless it has ended.
func (s *Shard) withConsumer(id ConsumerID, do func(*Shard, *consumer)) error {
	return s.push(&task{do: func(s *Shard) error {
		if c := s.consumers[id]; c != nil {
			do(s, c)
		}
		return nil
	}})
}

// notifyEnded tells the sink that its consumer has ended. One that does not know of its
// session yet is refused instead.
func (c *consumer) notifyEnded(err error) {
	if c.granting {
		c.refusal = err
		return
	}
	c.sink.Ended(err)
}

// ended removes a consumer from those that operations may name.
func (s *Shard) ended(c *consumer) {
	c.gone = true
	delete(s.consumers, c.id)
}

func (s *Shard) detach(c *consumer) {
	if c.gone {
		return // its queue was dropped meanwhile
	}
	s.withdraw(c)
	s.ended(c)
	c.queue.entity.used = s.tx.Now() // until now
	if i := slices.Index(c.queue.consumers, c); i >= 0 {
		c.queue.consumers = slices.Delete(c.queue.consumers, i, i+1)
	}
	if c.take.Session != (queue.SessionLock{}) {
		c.queue.q.ReleaseSession(s.tx.Now(), c.take.Session, s.out(c.queue))
		s.collectEffects(c.queue)
	}
}
