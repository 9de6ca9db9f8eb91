// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
)

// receiverCost is what a receiver takes beside events: its goroutine, the broker's end
// with the indexes that it has read, and what the hub keeps for it.
const receiverCost = 48 << 10

// Kinds of events of a receiver.
const (
	eventChunk uint8 = iota // Value is a *chunk
	eventEnded              // Err is why nothing more is read
)

// receiver is a link on which the peer receives the events of a partition.
type receiver struct {
	c       *links
	link    *endpoint.Link
	path    string
	id      uint64 // of the hub
	metrics bool   // the peer wants to know how far behind it is
	batches bool   // the peer takes batches as they are stored

	ctx     context.Context // ends with the link
	cancel  context.CancelFunc
	from    *broker.EventReader // nil while it is not open
	gone    bool                // detached
	over    error               // it ended before the attach was answered
	backlog []*chunk            // that wait to be sent, oldest first
	// position is the number of the next event that has not come from the broker.
	position int64
	drain    drain

	// space is what was read last, or is being read; owned by the goroutine that reads.
	space []byte

	// What the connection tells the goroutine that reads.
	granted atomic.Bool   // the peer has granted credit
	ahead   atomic.Int32  // chunks that were posted and not sent
	look    chan struct{} // capacity 1: one of these has changed
}

func (c *links) attachReceiver(l *endpoint.Link, path string) error {
	if err := c.Require(access.Listen, path); err != nil {
		return err
	}
	h, err := c.broker.HubInfo(path)
	if err != nil {
		return err
	}
	o, err := readerOptionsOf(l)
	if err != nil {
		return err
	}
	r := &receiver{
		c: c, link: l, path: path, id: h.ID, look: make(chan struct{}, 1),
		metrics: desires(l.Remote(), names.RuntimeMetric),
	}
	if v, ok := wire.Lookup(l.Remote().Properties, names.Batches); ok {
		r.batches, _ = v.Bool()
	}
	o.Space = r.takeSpace
	o.Ended = func(err error) { c.Do(func() { r.ended(err) }) }
	if !c.Counter().Take(receiverCost) {
		return azure.ErrNoMemory
	}
	c.receivers.Add(1)
	r.ctx, r.cancel = context.WithCancel(c.Context())
	c.Attached(l, r)
	c.Go(func() { r.run(o) })
	return nil
}

// opened answers the attach; it does nothing if the peer has left meanwhile.
func (r *receiver) opened(from *broker.EventReader, position int64, err error) {
	if err == nil {
		err = r.over
	}
	if err == nil {
		err = r.Check() // it may have waited for long
	}
	switch {
	case r.gone:
		return
	case err != nil:
		r.link.Refuse(r.c.WireError(r.path, readerError(err)))
		return
	}
	r.from, r.position = from, position
	var a endpoint.Accept
	if r.metrics {
		a.OfferedCapabilities = []string{names.RuntimeMetric}
	}
	if r.batches {
		b, at := codec.BeginMap(nil)
		b = codec.AppendBool(codec.AppendSymbol(b, names.Batches), true)
		a.Properties = codec.EndMap(b, at, 1)
	}
	r.link.Accept(a)
	r.Credit()
}

// Credit sends what waits, and has more read if the peer takes it.
func (r *receiver) Credit() {
	if r.from == nil || !r.link.Attached() {
		return
	}
	r.send()
	r.drain.check(r)
}

// Handle takes an event in the connection's context.
func (r *receiver) Handle(e *azure.Event) {
	if e.Kind == eventEnded {
		r.ended(e.Err)
		return
	}
	out := e.Value.(*chunk)
	if r.gone {
		r.c.release(out.charge)
		return
	}
	r.backlog = append(r.backlog, out)
	r.position = out.next
	r.send()
	r.drain.check(r)
}

// send sends what waits, as far as there is credit and the peer reads.
func (r *receiver) send() {
	n := 0
	for n < len(r.backlog) {
		out := r.backlog[n]
		sent, err := r.link.SendSettled(out.payloads, out.sent)
		out.sent += sent
		if err != nil {
			r.link.Detach(r.c.WireError(r.path, err))
			return
		}
		if out.sent < len(out.payloads.Ends) {
			if sent == 0 {
				break
			}
			continue
		}
		r.c.release(out.charge)
		out.recycle()
		r.ahead.Add(-1)
		n++
	}
	if n > 0 {
		r.backlog = slices.Delete(r.backlog, 0, n)
	}
	granted := r.link.Granted() > 0
	if r.granted.Swap(granted) != granted || n > 0 {
		r.lookAgain()
	}
}

// lookAgain has the goroutine that reads look at what has changed.
func (r *receiver) lookAgain() {
	select {
	case r.look <- struct{}{}:
	default: // it will
	}
}

// ended detaches the link because the reader has ended by itself. A hub that was deleted
// is said to be so, not to have stopped.
func (r *receiver) ended(err error) {
	switch {
	case r.gone:
		return
	case r.from == nil:
		r.over = err
		return
	}
	if gone := r.Check(); gone != nil {
		err = gone
	}
	r.link.Detach(r.c.WireError(r.path, readerError(err)))
}

// Detached ends the reader at once: another may be opened in its place.
func (r *receiver) Detached() {
	r.gone = true
	r.cancel()
	r.drain.stop()
	if r.from != nil {
		r.from.Close()
	}
	for _, out := range r.backlog {
		r.c.release(out.charge)
	}
	r.backlog = nil
	r.c.receivers.Add(-1)
	r.c.Counter().Release(receiverCost)
}

// Check implements azure.Node.
func (r *receiver) Check() error {
	if err := r.c.IsStill(r.path, r.id); err != nil {
		return err
	}
	if err := r.c.Require(access.Listen, r.path); err != nil {
		return err
	}
	h, err := r.c.broker.HubInfo(r.path)
	if err == nil && !h.Status.CanReceive() {
		err = broker.ErrDisabled
	}
	return err
}

func (r *receiver) Transfer(*endpoint.Incoming)   {}
func (r *receiver) Disposition(*endpoint.Outcome) {}
func (r *receiver) Paths() []string               { return []string{r.path} }
