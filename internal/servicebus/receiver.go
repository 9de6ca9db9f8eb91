// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

const (
	// openTimeout bounds the opening of a receiver that waits for no session.
	openTimeout = 30 * time.Second
	// maxInFlightBytes bounds the bytes on their way from the broker to one connection. Its
	// receivers share it, but each may have one message.
	maxInFlightBytes = 8 << 20
	// maxOnTheWay bounds their number.
	maxOnTheWay = 1 << 16
	// unknownSize is how large messages are taken to be before one was seen.
	unknownSize = 64 << 10
	// unknownSizeSettled is that of messages that are received and deleted: they cannot be
	// read again, and stay in memory while they wait.
	unknownSizeSettled = 256 << 10
	// receiverCost is what a receiver takes: the broker's end, tables, and a goroutine
	// until it is opened. A set has as much for each of its sources.
	receiverCost = 8 << 10
)

// receiver is a link on which the peer receives from an entity. It is the
// broker's Sink as well: those methods say so and may run on any goroutine.
type receiver struct {
	c       *links
	link    *endpoint.Link
	path    string
	mode    broker.Mode
	session sessionRequest

	options linkOptions        // of our own clients
	recalls *recalls           // where it is asked for messages back; nil while there is none
	cancel  context.CancelFunc // ends the wait for a session
	// from is the broker's end, set once by the opening goroutine. It settles
	// also after it was closed.
	from   atomic.Pointer[brokerReceiver]
	cost   int64 // that it is charged with
	closed bool  // from is
	gone   bool  // detached
	over   error // the broker ended it before it was accepted

	// typical is the size of a message here, in bytes: a moving average.
	typical int64
	// drainFrom is handled when the peer's drain was passed on.
	drainFrom uint64
	draining  bool // a drain was passed on, and was not answered; there is one at most
	changed   bool // the peer has changed its credit since
	// handled counts what the broker delivered and we have dealt with; allowed
	// is how many it may deliver in all. Both are counted from the beginning, so
	// that what is on its way between us needs no thought.
	handled, allowed uint64
	locks            lockTable
	tokens           []queue.Token     // scratch of disposition
	settledBacklog   []settledDelivery // received and deleted, waiting for credit
	held             []azure.Event     // that wait for what was sent before to be written
	departing        departures        // received and deleted, on the way to the transport
	never            neverLeft         // given to the endpoint, and not sent
}

func (c *links) attachReceiver(l *endpoint.Link, path string) error {
	if err := c.Require(access.Listen, path); err != nil {
		return err
	}
	if err := checkFilters(l.Remote().Source); err != nil {
		// A client of Event Hubs always has a selector, and asks for what is not there.
		if _, missing := c.broker.Resolve(path); errors.Is(missing, broker.ErrNotFound) {
			return missing
		}
		return err
	}
	r := &receiver{c: c, link: l, path: path, session: sessionRequestOf(l.Remote().Source), typical: unknownSize}
	if l.Remote().SenderSettleMode == frame.SenderSettled {
		r.mode = broker.ReceiveAndDelete
		r.typical = unknownSizeSettled
	}
	o := broker.ReceiverOptions{
		Mode:        r.mode,
		Name:        l.Name(),
		Sink:        r,
		Session:     r.session.id,
		NextSession: r.session.asked && r.session.id == nil,
	}
	var err error
	if r.options, err = linkOptionsOf(l.Remote().Properties, &o); err != nil {
		return err
	}
	if r.options.poll {
		l.DrainEach(polled)
	}
	if err := r.Check(); err != nil {
		return err
	}
	timeout := openTimeout
	if o.NextSession {
		timeout = acceptTimeoutOf(l.Remote().Properties)
	}
	r.cost = receiverCost * int64(max(1, len(r.options.sources)))
	if !c.Counter().Take(r.cost) {
		return azure.ErrNoMemory
	}
	c.receivers[r] = struct{}{}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	r.cancel = cancel
	c.Attached(l, r)
	c.opening[r] = struct{}{}
	c.Go(func() {
		defer cancel()
		from, err := r.open(ctx, o)
		if err == nil {
			r.from.Store(&from)
		}
		c.Do(func() { r.opened(err) })
	})
	return nil
}

// opened answers the attach, unless the peer has left meanwhile.
func (r *receiver) opened(err error) {
	delete(r.c.opening, r)
	switch {
	case r.gone:
		r.close()
	case err != nil:
		r.refuse(r.refusal(err))
	case r.over != nil:
		r.refuse(r.c.WireError(r.path, r.over))
	default:
		if err := r.Check(); err != nil { // it may have waited for long
			r.refuse(r.c.WireError(r.path, err))
			return
		}
		r.accept()
	}
}

// refuse turns the attach down.
func (r *receiver) refuse(err *endpoint.Error) { r.link.Refuse(err) }

// refusal gives the errors of an attach the texts that SDKs match on.
func (r *receiver) refusal(err error) *endpoint.Error {
	switch {
	case errors.Is(err, broker.ErrSessionRequired):
		return endpoint.Errorf(endpoint.CondNotAllowed, textSessionRequired)
	case errors.Is(err, broker.ErrSessionLocked) && r.session.id != nil:
		return endpoint.Errorf(names.SessionCannotBeLocked,
			"The requested session '%s' cannot be accepted. It may be locked by another receiver.", *r.session.id)
	}
	return r.c.WireError(r.path, err)
}

func (r *receiver) accept() {
	var a endpoint.Accept
	id := ""
	properties, at := codec.BeginMap(nil)
	n := 0
	if from, ok := r.brokerReceiver().(*broker.Receiver); ok && r.session.asked {
		var until time.Time
		id, until = from.Session()
		properties = appendLockedUntil(properties, until)
		n++
	}
	if r.options.any {
		properties = r.options.appendGranted(properties)
		n++
	}
	if n > 0 {
		a.Properties = codec.EndMap(properties, at, n)
	}
	a.Source = r.session.granted(r.link.Remote().Source, id)
	r.link.Accept(a)
	r.Credit()
}

// brokerReceiver returns the broker's end, nil if there is none yet.
func (r *receiver) brokerReceiver() brokerReceiver {
	if from := r.from.Load(); from != nil {
		return *from
	}
	return nil
}

// close closes the broker's end, if there is one yet. It runs in the connection's
// context, or after it.
func (r *receiver) close() {
	if from := r.brokerReceiver(); from != nil && !r.closed {
		r.closed = true
		from.Close()
	}
}

func (r *receiver) Detached() {
	r.gone = true
	r.cancel()
	delete(r.c.receivers, r)
	r.c.Counter().Release(r.cost)
	r.takeHeld() // it goes back: the link takes no more
	r.releaseBacklog()
	r.giveBack()
	if _, opening := r.c.opening[r]; !opening {
		r.close()
	}
}

// credit passes on what the peer is ready to take.
func (r *receiver) Credit() {
	from := r.brokerReceiver()
	if from == nil || !r.link.Attached() {
		return
	}
	r.sendBacklog()
	r.takeHeld()
	if r.draining {
		r.changed = true
		return
	}
	r.ask(from)
}

// ask passes on the peer's credit, and its drain. A poll that nothing can be sent for yet
// waits, or it would end without what there is.
func (r *receiver) ask(from brokerReceiver) {
	r.allow(from)
	if r.link.Draining() && !r.pollWaits() {
		r.drainFrom, r.draining, r.changed = r.handled, true, false
		from.Drain()
	}
}

// pollWaits reports whether a poll has credit left that cannot be used now. Credit is
// called when it can. The drain of another client is answered at once: it may be what the
// client waits for before it reads on.
func (r *receiver) pollWaits() bool { return r.options.poll && r.link.CreditWaits() }

// drained answers the peer's drain. As long as that brought messages there may be
// more than one round brings, so it is asked again.
func (r *receiver) drained() {
	r.draining = false
	more := r.handled > r.drainFrom && r.link.Draining()
	if r.changed && r.link.Attached() || more && (r.link.Credit() > 0 || r.pollWaits()) {
		r.changed = false
		r.ask(r.brokerReceiver())
		return
	}
	r.link.DrainDone()
}

// Deliver takes messages from the broker, on its goroutine.
func (r *receiver) Deliver(ds []broker.Delivery) {
	r.c.loader.add(work{to: r, deliveries: ds})
}

// Drained takes its turn behind the deliveries before it.
func (r *receiver) Drained() { r.c.loader.add(work{to: r, kind: eventDrained}) }

// Ended takes its turn behind the deliveries before it.
func (r *receiver) Ended(err error) { r.c.loader.add(work{to: r, kind: eventEnded, err: err}) }

// Handle takes an event in the connection's context.
func (r *receiver) Handle(e *azure.Event) {
	switch {
	case e.Kind == eventSettled:
		r.settled(e.Value.(*settlement))
	case len(r.held) > 0 || !r.take(e):
		r.held = append(r.held, *e)
	}
}

// take deals with what comes from the broker, and reports whether all of e is done.
// Deliveries stay while so much waits to be written to the peer that the endpoint wants
// no more.
func (r *receiver) take(e *azure.Event) bool {
	switch e.Kind {
	case eventLoaded:
		if r.link.Wait() {
			return false
		}
		out := e.Value.(*loaded)
		charge := out.charge
		r.send(out)
		r.c.loader.sent(charge)
	case eventReady:
		ready := e.Value.(*work)
		for len(ready.deliveries) > 0 {
			if r.link.Wait() {
				return false
			}
			r.send(r.c.loader.encode(ready))
		}
		r.c.loader.sent(ready.charge)
	case eventDrained:
		r.drained()
	case eventEnded:
		r.ended(e.Err)
	}
	return true
}

// takeHeld deals with what was held, as far as the endpoint wants it.
func (r *receiver) takeHeld() {
	n := 0
	for n < len(r.held) && r.take(&r.held[n]) {
		n++
	}
	r.held = slices.Delete(r.held, 0, n)
}

func (r *receiver) ended(err error) {
	if _, opening := r.c.opening[r]; opening {
		r.over = err
		return
	}
	r.link.Detach(r.c.WireError(r.path, err))
}

// send sends what was loaded. Without link credit, a locked message is released
// (delivery count unchanged) and a pre-settled one waits in settledBacklog. An unreadable
// or too large message is abandoned, so that its delivery count ends the retries.
func (r *receiver) send(l *loaded) {
	r.handled += uint64(l.taken)
	if n := int64(len(l.messages)); n > 0 {
		r.typical = (3*r.typical + int64(len(l.buf))/n) / 4
	}
	if r.mode == broker.ReceiveAndDelete {
		r.sendSettled(l)
	} else {
		r.sendLocked(l)
	}
	if from := r.brokerReceiver(); from != nil {
		r.topUp(from)
	}
	r.c.loader.recycle(l)
}

func (r *receiver) sendLocked(l *loaded) {
	var back []queue.Token
	failed := slices.Clone(l.unreadable)
	for i := range l.messages {
		p := &l.messages[i]
		switch err := r.sendOne(p, l.source, l.buf[p.from:p.to]); {
		case errors.Is(err, endpoint.ErrTooLarge):
			failed = append(failed, p.token)
		case err != nil:
			back = append(back, p.token)
		}
	}
	if len(back) > 0 {
		r.settle(l.source, back, broker.Outcome{Disposition: broker.Release}, ignore)
	}
	if len(failed) > 0 {
		r.settle(l.source, failed, broker.Outcome{Disposition: broker.Abandon}, ignore)
	}
}

func (r *receiver) sendOne(p *encodedMessage, source int, payload []byte) error {
	ref := r.locks.put(p.token)
	tag := p.tag[:]
	if len(r.options.sources) > 0 {
		r.locks.from(ref, source)
		// Messages of two queues may have equal tokens.
		tag = append(tag, byte(source>>8), byte(source))
	}
	err := r.link.Send(endpoint.Outgoing{Tag: tag, Payload: payload, Ref: ref})
	if err != nil {
		r.locks.take(ref)
	}
	return err
}

// availableCredit is how many deliveries the link takes now: what it has credit for, but no
// more than its part of the connection's memory, because the peer may be slow to read
// them.
func (r *receiver) availableCredit() int64 {
	others := max(1, int64(len(r.c.receivers)))
	most := min(maxInFlightBytes/others/max(1, r.typical), maxOnTheWay/others)
	if r.c.loader.usedUp.Load() {
		most = 1
	}
	space := min(int64(r.link.Credit()), max(1, most))
	return max(0, space-int64(len(r.settledBacklog)))
}

// allow lets the broker deliver as much as there is credit for.
func (r *receiver) allow(from brokerReceiver) {
	r.allowed = r.handled + uint64(r.availableCredit())
	from.SetDeliveryLimit(r.allowed)
}

// topUp raises the limit before the broker has used up this one.
func (r *receiver) topUp(from brokerReceiver) {
	if r.draining {
		return // what the drain leaves is void
	}
	if left, space := int64(r.allowed)-int64(r.handled), r.availableCredit(); left < space && left <= space/2 {
		r.allow(from)
	}
}

func ignore([]error) {}

func (r *receiver) Transfer(*endpoint.Incoming) {}
