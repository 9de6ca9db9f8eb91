// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"sync"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
)

// outbox carries results from the broker's goroutines into the connection's
// context. However many come while one pass waits to run, they share it, so that
// the endpoint can put the answers to a whole batch into one disposition.
type outbox struct {
	do    func(func())
	after func()       // runs at the end of each pass
	late  func(*event) // takes what comes when the connection is over, on any goroutine

	mu      sync.Mutex
	waiting []event // guarded by mu
	due     bool    // a pass is on its way; guarded by mu
	closed  bool    // guarded by mu

	spare []event // owned by the connection's context
}

// maxSpareEvents is how many events room is kept for; more than that was a burst.
const maxSpareEvents = 1 << 13

// event is one result. Which fields count is up to whom it goes.
type event struct {
	to eventHandler

	in     endpoint.Delivery // a delivery of the peer that was dealt with
	charge int64             // for that delivery, to give back
	sent   *settlement       // deliveries to the peer that were settled
	load   *loaded           // deliveries ready to leave
	ready  *work             // deliveries to be encoded
	kind   eventKind
	err    error
	errs   []error
}

type eventKind uint8

const (
	eventAnswer  eventKind = iota // in, err
	eventSettled                  // sent, errs
	eventLoaded                   // load
	eventReady                    // ready: deliveries that need no loading
	eventDrained
	eventEnded   // err
	eventForward // load: a message for a temporary node
)

// eventHandler takes an event in the connection's context.
type eventHandler interface{ happened(e *event) }

func (o *outbox) init(do func(func()), after func(), late func(*event)) {
	o.do, o.after, o.late = do, after, late
}

// post hands e over. It may be called from any goroutine and never blocks.
func (o *outbox) post(e event) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		o.late(&e)
		return
	}
	o.waiting = append(o.waiting, e)
	first := !o.due
	o.due = true
	o.mu.Unlock()
	if first {
		o.do(o.pass)
	}
}

func (o *outbox) pass() {
	o.mu.Lock()
	events := o.waiting
	o.waiting, o.due = o.spare[:0], false
	o.mu.Unlock()
	for i := range events {
		events[i].to.happened(&events[i])
	}
	clear(events)
	o.spare = events
	if cap(events) > maxSpareEvents {
		o.spare = nil
	}
	o.after()
}

// close runs the last pass. What comes later is too late.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.pass()
}
