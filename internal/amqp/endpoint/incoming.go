// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// maxTag is the length of a delivery-tag [AMQP 2.8.7].
const maxTag = 32

// onTransfer takes a transfer of the peer [AMQP 2.6.12].
func (s *Session) onTransfer(t *frame.Transfer, payload []byte) {
	if l := s.links.get(t.Handle); l != nil && !l.reserve(t, payload) {
		s.m.paused = true // before anything has changed: the transfer comes again
		return
	}
	if s.inWindow == 0 {
		s.fail(Errorf(CondWindowViolation, "transfer %d is outside of the window", s.nextIn))
		return
	}
	s.nextIn++
	s.inWindow--
	if s.inWindow < s.m.cfg.IncomingWindow/2 && !s.flowDue {
		s.flowDue = true
		s.touch()
	}
	l := s.link(t.Handle)
	switch {
	case l == nil:
	case l.state == detaching:
		l.refuseLate(t)
	case l.Role() != frame.Receiver:
		s.fail(Errorf(CondNotAllowed, "transfer on handle %d, on which you receive", t.Handle))
	case l.receiving:
		l.receiveMore(t, payload)
	default:
		l.receive(t, payload)
	}
}

// reserve reports whether the App has space for the delivery that a transfer
// completes. It is not asked about what will be refused anyway.
func (l *Link) reserve(t *frame.Transfer, payload []byte) bool {
	d := Arriving{Format: t.MessageFormat, before: l.body, last: payload}
	if l.receiving {
		d.Format = l.head.Format
	}
	if t.More || t.Aborted || l.state != attached || l.Role() != frame.Receiver ||
		!l.receiving && l.credit == 0 || uint64(d.Size()) > l.maxMessage {
		return true
	}
	return l.session.m.app.Reserve(l, d)
}

// Arriving is a delivery that has come as a whole and is not handed over yet.
type Arriving struct {
	Format       uint32
	before, last []byte // the payload of its last transfer, and of those before
}

// Arriving returns the delivery as it was before it was handed over.
func (in *Incoming) Arriving() Arriving { return Arriving{Format: in.Format, last: in.Payload} }

// Size is the number of bytes of its payload.
func (d Arriving) Size() int { return len(d.before) + len(d.last) }

// Payload returns its bytes, which must not be changed and are valid until the App returns. Those
// of several transfers are copied.
func (d Arriving) Payload() []byte {
	if len(d.before) == 0 {
		return d.last
	}
	return append(d.before[:len(d.before):len(d.before)], d.last...)
}

// receive takes the first transfer of a delivery, which is the only one of most.
func (l *Link) receive(t *frame.Transfer, payload []byte) {
	switch {
	case l.credit == 0:
		l.detachWithError(Errorf(CondTransferLimitExceeded, "transfer without credit"))
		return
	case !t.HasDeliveryID || t.DeliveryTag == nil:
		l.detachWithError(Errorf(CondInvalidField, "first transfer of a delivery without delivery-id or delivery-tag"))
		return
	case len(t.DeliveryTag) > maxTag:
		l.detachWithError(Errorf(CondInvalidField, "delivery-tag of %d bytes; the limit is %d", len(t.DeliveryTag), maxTag))
		return
	case t.Resume:
		l.detachWithError(Errorf(CondNotImplemented, "deliveries cannot be resumed"))
		return
	}
	l.credit--
	l.count++
	l.unsettled++
	if t.More || t.Aborted {
		l.receiving = true
		l.head = Incoming{
			Delivery: Delivery{ID: t.DeliveryID},
			Tag:      bytes.Clone(t.DeliveryTag),
			Format:   t.MessageFormat,
		}
		l.receiveMore(t, payload)
		return
	}
	if uint64(len(payload)) > l.maxMessage {
		l.tooLarge(Delivery{ID: t.DeliveryID, Settled: t.Settled})
		return
	}
	in := &l.session.m.scratch.incoming
	*in = Incoming{
		Delivery: Delivery{ID: t.DeliveryID, Settled: t.Settled},
		Tag:      t.DeliveryTag, Format: t.MessageFormat, State: t.State, Payload: payload,
	}
	l.session.m.app.Transfer(l, in)
}

// receiveMore adds a transfer to the delivery that is being received.
func (l *Link) receiveMore(t *frame.Transfer, payload []byte) {
	m := l.session.m
	switch {
	case t.HasDeliveryID && t.DeliveryID != l.head.ID:
		l.detachWithError(Errorf(CondInvalidField, "delivery %d begins before delivery %d is complete", t.DeliveryID, l.head.ID))
		return
	case t.Aborted: // [AMQP 2.7.5] aborted deliveries count as settled
		l.endPartial()
		l.unsettled--
		l.topUp()
		return
	case uint64(len(l.body)+len(payload)) > l.maxMessage:
		l.tooLarge(l.head.Delivery)
		return
	case m.partial+len(payload) > m.cfg.MaxPartial || !l.hold(len(payload)):
		l.detachWithError(Errorf(CondResourceLimitExceeded, "too many unfinished deliveries"))
		return
	}
	m.partial += len(payload)
	l.body = append(l.body, payload...)
	l.head.Settled = l.head.Settled || t.Settled
	if t.State.Kind != frame.StateNone {
		l.head.State = frame.State{Kind: t.State.Kind} // the rest belongs to the frame
	}
	if t.More {
		return
	}
	in := &m.scratch.incoming
	*in = l.head
	in.Payload = l.body
	l.endPartial()
	m.app.Transfer(l, in)
}

// endPartial forgets what was received of a delivery.
func (l *Link) endPartial() {
	m := l.session.m
	m.partial -= len(l.body)
	m.mem.counter.Release(int64(cap(l.body)))
	l.body, l.head, l.receiving = nil, Incoming{}, false
}

// tooLarge refuses a delivery and closes its link. The delivery is rejected as
// well, because the JavaScript SDK waits for a disposition until it times out,
// whatever happens to the link.
func (l *Link) tooLarge(d Delivery) {
	err := Errorf(CondMessageSizeExceeded, "message is larger than %d bytes", l.maxMessage)
	l.Settle(d, frame.Rejected(err))
	l.detachWithError(err)
}

// Settle answers a delivery we received. Consecutive deliveries with the same
// outcome leave as one disposition.
//
// It settles also where the peer asked for rcv-settle-mode second, which allows us to
// wait for the peer to settle but does not oblige us: what was answered is durable, so
// there is nothing to wait for. uAMQP and Proton's BlockingSender take only a settled
// disposition for the end of a send.
func (l *Link) Settle(d Delivery, s frame.State) {
	if !l.Attached() || l.unsettled == 0 {
		return
	}
	l.unsettled--
	if !d.Settled {
		l.session.received.add(l.session, settlement{first: d.ID, last: d.ID, settled: true, state: s}, frame.Receiver)
	}
	l.topUp()
}

// SettleNow is Settle for a delivery whose disposition has to leave before anything that
// is sent later on the connection.
func (l *Link) SettleNow(d Delivery, s frame.State) {
	l.Settle(d, s)
	if l.Attached() {
		l.session.received.flush(l.session, frame.Receiver)
	}
}
