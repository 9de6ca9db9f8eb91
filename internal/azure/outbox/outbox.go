// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"sync"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
)

// Box carries results from the broker's goroutines into the connection's
// context. However many come while one pass waits to run, they share it, so that
// the endpoint can put the answers to a whole batch into one disposition.
type Box struct {
	do      func(func())
	charges *Unsynced
	late    func(*Event)

	mu      sync.Mutex
	waiting []Event // guarded by mu
	due     bool    // a pass is on its way; guarded by mu
	closed  bool    // guarded by mu

	spare []Event // owned by the connection's context
}

// New returns a box whose passes run by do, which runs functions in the connection's
// context. The charges of events are given back to charges. What comes when the
// connection is over goes to late, on any goroutine.
func New(do func(func()), charges *Unsynced, late func(*Event)) *Box {
	return &Box{do: do, charges: charges, late: late}
}

// maxSpareEvents is how many events the reused buffer may have; more than that was a burst.
const maxSpareEvents = 1 << 13

// Event is one result. Which fields count is up to whom it goes.
type Event struct {
	To    Handler
	Kind  uint8             // says to its handler what it is
	In    endpoint.Delivery // a delivery of the peer that was dealt with
	Err   error
	Value any // a pointer, so that nothing is allocated for it

	// Charge is what Unsynced.Take returned for the delivery. It is given back when
	// the event has been handled, or comes too late.
	Charge int64
}

// Handler takes an event in the connection's context.
type Handler interface{ Handle(e *Event) }

// Post hands e over. It may be called from any goroutine and never blocks.
func (o *Box) Post(e Event) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		o.charges.account.Release(e.Charge)
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

func (o *Box) pass() {
	o.mu.Lock()
	events := o.waiting
	o.waiting, o.due = o.spare[:0], false
	o.mu.Unlock()
	for i := range events {
		o.charges.answer(events[i].Charge)
		events[i].To.Handle(&events[i])
	}
	clear(events)
	o.spare = events
	if cap(events) > maxSpareEvents {
		o.spare = nil
	}
	o.charges.settle()
}

// Close runs the last pass. What comes later is too late.
func (o *Box) Close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.pass()
}
