// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// SourceSelection is how a receiver over several queues chooses among them.
type SourceSelection uint8

// The selections.
const (
	// ByOrder serves the first queue, in the order given, that has a message.
	ByOrder SourceSelection = iota
	// ByLevel serves the queue whose next message, by its own discipline and of the levels
	// that the receiver accepts, has the highest level; among equals the first in the order
	// given.
	ByLevel
)

// MultiReceiverSink gets the messages of a MultiReceiver. Its methods are called in order
// from the receiver's own goroutine and must not block.
type MultiReceiverSink interface {
	// Deliver delivers a message of the queue with that index.
	Deliver(source int, d Delivery)
	// Drained answers Drain.
	Drained()
	// Ended says that the receiver has ended.
	Ended(err error)
}

// MultiReceiver receives from several queues as if they were one. It probes them in the
// order of its selection and takes from the first that has a message. When all are empty
// it waits for all of them at once: an idle receiver costs nothing.
//
// The queues may be in different shards, so two of them can answer a wait at the same
// time. Excess deliveries are released without incrementing the delivery count.
type MultiReceiver struct {
	sink    MultiReceiverSink
	rule    SourceSelection
	sources []*setSource

	mu     sync.Mutex
	limit  uint64        // guarded by mu; messages that the sink accepts in all
	given  uint64        // guarded by mu; messages delivered to the sink
	drain  bool          // guarded by mu; Drain is not answered yet
	events []setEvent    // guarded by mu
	over   bool          // guarded by mu; events are not read any more
	wake   chan struct{} // capacity 1: notifies run

	cancel context.CancelCauseFunc
	done   sync.WaitGroup
}

// setEvent is an event of a source.
type setEvent struct {
	source  int
	ds      []Delivery
	drained bool
	ended   error
}

// setSource is one queue of a MultiReceiver. It is a Sink.
type setSource struct {
	set   *MultiReceiver
	index int
	n     *catalog.Entity
	part  queueserver.SubQueue
	rec   *Receiver
	seen  uint64 // owned by run; deliveries so far
}

// OpenSet attaches a receiver to queues or subscriptions, at least one, in order of
// preference. Messages are locked; Mode, sessions and Sink of the options are not
// supported. It gets no message before SetDeliveryLimit.
func (b *Broker) OpenSet(ctx context.Context, addrs []string, rule SourceSelection, o ReceiverOptions, sink MultiReceiverSink) (*MultiReceiver, error) {
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: a receiver needs at least one queue", ErrInvalid)
	}
	if o.Mode != PeekLock || o.Session != nil || o.NextSession {
		return nil, fmt.Errorf("%w: a receiver over several queues supports peek-lock without sessions only", ErrNotAllowed)
	}
	s := &MultiReceiver{sink: sink, rule: rule, wake: make(chan struct{}, 1)}
	for i, addr := range addrs {
		src := &setSource{set: s, index: i}
		o.Sink, o.probing = src, true
		rec, err := b.OpenReceiver(ctx, addr, o)
		if err != nil {
			s.closeSources()
			return nil, err
		}
		src.n, src.part, src.rec = rec.n, rec.part, rec
		s.sources = append(s.sources, src)
	}
	ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	s.done.Go(func() {
		err := s.run(ctx)
		s.closeSources()
		s.finish()
		if !errors.Is(err, errSetClosed) {
			s.sink.Ended(err)
		}
	})
	return s, nil
}

var errSetClosed = errors.New("broker: receiver closed")

// SetDeliveryLimit allows the sink messages up to the total-th since the receiver was
// opened.
func (s *MultiReceiver) SetDeliveryLimit(total uint64) {
	s.mu.Lock()
	s.limit = total
	s.mu.Unlock()
	s.notify()
}

// Drain delivers what is ready, up to the delivery limit, and then calls Drained; the
// unused rest of the limit is canceled.
func (s *MultiReceiver) Drain() {
	s.mu.Lock()
	s.drain = true
	s.mu.Unlock()
	s.notify()
}

// draining reports whether the sink waits for the answer to Drain.
func (s *MultiReceiver) draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drain
}

// drained answers Drain, if it was called.
func (s *MultiReceiver) drained() bool {
	s.mu.Lock()
	asked := s.drain
	if asked {
		s.drain, s.limit = false, s.given
	}
	s.mu.Unlock()
	if asked {
		s.sink.Drained()
	}
	return asked
}

// Source returns the path of the queue with that index.
func (s *MultiReceiver) Source(i int) string { return s.sources[i].n.Path }

// ID is that of the queue with that index; see catalog.Address.
func (s *MultiReceiver) ID(i int) uint64 { return uint64(s.sources[i].n.ID) }

// Settle settles messages of one of the queues.
func (s *MultiReceiver) Settle(source int, tokens []queue.Token, o Outcome, done func([]error)) {
	s.sources[source].rec.Settle(tokens, o, done)
}

// Close ends the receiver and waits for its goroutine. Message locks stay.
func (s *MultiReceiver) Close() {
	s.cancel(errSetClosed)
	s.done.Wait()
}

// finish releases the deliveries that were not read, and from now on every delivery as it
// arrives.
func (s *MultiReceiver) finish() {
	s.mu.Lock()
	events := s.events
	s.events, s.over = nil, true
	s.mu.Unlock()
	for _, e := range events {
		Return(e.ds)
	}
}

func (s *MultiReceiver) closeSources() {
	for _, src := range s.sources {
		src.rec.Close()
	}
}

func (s *MultiReceiver) notify() {
	select {
	case s.wake <- struct{}{}:
	default: // run is notified already
	}
}

// Deliver implements Sink.
func (src *setSource) Deliver(ds []Delivery) { src.set.post(setEvent{source: src.index, ds: ds}) }

// Drained implements Sink.
func (src *setSource) Drained() { src.set.post(setEvent{source: src.index, drained: true}) }

// Ended implements Sink.
func (src *setSource) Ended(err error) { src.set.post(setEvent{source: src.index, ended: err}) }

func (s *MultiReceiver) post(e setEvent) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.events = append(s.events, e)
	}
	s.mu.Unlock()
	if over {
		Return(e.ds)
		return
	}
	s.notify()
}

// availableCredit is how many messages the sink accepts now.
func (s *MultiReceiver) availableCredit() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit - min(s.given, s.limit)
}

// run serves the sink until ctx ends or a source does.
func (s *MultiReceiver) run(ctx context.Context) error {
	for {
		for s.availableCredit() == 0 && !s.drained() {
			if _, err := s.next(ctx); err != nil {
				return err
			}
		}
		if s.availableCredit() == 0 {
			continue
		}
		served, err := s.probe(ctx)
		if err != nil {
			return err
		}
		if served || s.drained() {
			continue // start again with the best queue
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
}

// next waits for events and returns them.
func (s *MultiReceiver) next(ctx context.Context) ([]setEvent, error) {
	select {
	case <-s.wake:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s.mu.Lock()
	events := s.events
	s.events = nil
	s.mu.Unlock()
	for i, e := range events {
		if e.ended != nil {
			for _, e := range events[i:] {
				Return(e.ds)
			}
			return nil, e.ended
		}
		s.take(e.source, e.ds)
	}
	return events, nil
}

// take delivers up to the available credit to the sink and releases the others.
func (s *MultiReceiver) take(source int, ds []Delivery) {
	src := s.sources[source]
	src.seen += uint64(len(ds))
	for i, d := range ds {
		s.mu.Lock()
		fits := s.given < s.limit
		if fits {
			s.given++
		}
		s.mu.Unlock()
		if !fits {
			var tokens []queue.Token
			for _, d := range ds[i:] {
				tokens = append(tokens, d.Token)
			}
			src.rec.Settle(tokens, Outcome{Disposition: Release}, func([]error) {})
			return
		}
		s.sink.Deliver(source, d)
	}
}

// probe asks the queues one after the other, best first, for one message, and reports
// whether there was one.
func (s *MultiReceiver) probe(ctx context.Context) (bool, error) {
	for _, src := range s.ranked(ctx) {
		before := src.seen
		src.rec.SetDeliveryLimit(src.seen + 1)
		src.rec.Drain()
		for drained := false; !drained; {
			events, err := s.next(ctx)
			if err != nil {
				return false, err
			}
			drained = slices.ContainsFunc(events, func(e setEvent) bool { return e.drained && e.source == src.index })
		}
		if src.seen > before {
			return true, nil
		}
	}
	return false, nil
}

// ranked returns the sources in the order in which they are probed.
func (s *MultiReceiver) ranked(ctx context.Context) []*setSource {
	if s.rule == ByOrder {
		return s.sources
	}
	best := make([]int, len(s.sources)) // level of the next message, -1 if none
	for i, src := range s.sources {
		best[i] = -1
		// A source that cannot be asked ranks last and returns its error when probed.
		next, err := queueserver.Do(ctx, src.n.Shard, queueserver.NextLevel{Queue: src.n.QueueID(src.part), Take: src.rec.take})
		if err == nil && next.Found {
			best[i] = int(next.Level)
		}
	}
	ranked := slices.Clone(s.sources)
	slices.SortStableFunc(ranked, func(x, y *setSource) int { return best[y.index] - best[x.index] })
	return ranked
}

// wait waits for a message of any queue with a limit of one for each, and then cancels
// these limits.
func (s *MultiReceiver) wait(ctx context.Context) error {
	var before uint64
	for _, src := range s.sources {
		before += src.seen
		src.rec.SetDeliveryLimit(src.seen + 1)
	}
	for s.availableCredit() > 0 && !s.draining() {
		if _, err := s.next(ctx); err != nil {
			return err
		}
		var now uint64
		for _, src := range s.sources {
			now += src.seen
		}
		if now > before {
			break
		}
	}
	for _, src := range s.sources {
		src.rec.SetDeliveryLimit(src.seen)
	}
	return nil
}
