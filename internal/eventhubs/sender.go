// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
)

// sender is a link on which the peer sends to a hub.
type sender struct {
	c        *links
	link     *endpoint.Link
	path     string
	to       *broker.Publisher
	window   azure.Window
	producer *broker.Producer // of an idempotent producer; nil for others
	opening  openingProducer
}

func (c *links) attachSender(l *endpoint.Link, path string) error {
	if err := c.Require(access.Send, path); err != nil {
		return err
	}
	// As the peer writes it: the name of a publisher is a key, in which case counts.
	to, err := c.broker.OpenPublisher(l.Address())
	if err != nil {
		return err
	}
	s := &sender{c: c, link: l, path: path, to: to, window: azure.NewWindow(c.Unsynced().Limit())}
	if isIdempotent(l.Remote()) {
		return s.attachIdempotent()
	}
	c.Attached(l, s)
	if err := s.Check(); err != nil { // what changed before we were notified of changes
		return err
	}
	s.accept(endpoint.Accept{})
	return nil
}

func (s *sender) accept(a endpoint.Accept) {
	a.MaxMessageSize = uint64(s.to.MaxMessageSize())
	a.Credit = azure.SenderCredit
	s.link.Accept(a)
}

// Transfer stores a batch. The answer comes as an event, when the broker has made it
// durable.
func (s *sender) Transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, s.c.TakeCharge()
	if n, changed := s.window.After(len(in.Payload)); changed {
		s.link.SetWindow(n)
	}
	events, err := s.unpack(in)
	if err != nil {
		s.c.Unsynced().Release(charge)
		s.answer(d, err)
		return
	}
	s.to.Publish(events, func(err error) {
		recycle(events.Raw)
		s.c.Post(azure.Event{To: s, In: d, Charge: charge, Err: err})
	})
}

// unpack checks the events of a transfer and copies them as they are stored.
func (s *sender) unpack(in *endpoint.Incoming) (broker.Events, error) {
	if in.State.Kind == frame.StateTransactional {
		return broker.Events{}, endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
	}
	raw, a, err := message.AppendEvents(buffer(len(in.Payload)+1), message.Format(in.Format), in.Payload)
	if err != nil {
		return broker.Events{}, err
	}
	e := broker.Events{Raw: raw, Count: a.Count}
	if a.HasKey {
		e.Key = &a.Key
	}
	if s.producer != nil {
		seq, ok := message.ProducerSequence(message.Format(in.Format), in.Payload)
		if !ok {
			return broker.Events{}, fmt.Errorf("%w: the events of an idempotent producer have no sequence number", broker.ErrInvalid)
		}
		e.Producer = &broker.Producer{ID: s.producer.ID, Epoch: s.producer.Epoch, Seq: seq}
	}
	return e, nil
}

// Handle answers a delivery, when the broker has made it durable.
func (s *sender) Handle(e *azure.Event) { s.answer(e.In, e.Err) }

// answer tells the peer what became of a delivery. One that is too large costs the sender
// its link, as it should have known from the attach; so does the loss of its identity.
func (s *sender) answer(d endpoint.Delivery, err error) {
	if err == nil {
		s.link.Settle(d, frame.Accepted())
		return
	}
	if errors.Is(err, broker.ErrStopping) {
		if gone := s.Check(); gone != nil {
			err = gone // the hub was deleted, and the broker goes on
		}
	}
	we := s.c.WireError(s.path, err)
	s.link.Settle(d, frame.Rejected(we))
	if errors.Is(err, broker.ErrTooLarge) || errors.Is(err, broker.ErrProducerStolen) {
		s.link.Detach(we)
	}
}

// Messages implements azure.Storer: the events of a batch are stored as one piece.
func (s *sender) Messages(endpoint.Arriving) int { return 1 }

// Check implements azure.Node.
func (s *sender) Check() error {
	if err := s.c.IsStill(s.path, s.to.ID()); err != nil {
		return err
	}
	return s.c.Require(access.Send, s.path)
}

func (s *sender) Credit()                       {}
func (s *sender) Disposition(*endpoint.Outcome) {}
func (s *sender) Paths() []string               { return []string{s.path} }

// Detached ends the opening of a producer that is not open yet.
func (s *sender) Detached() { s.opening.cancel() }

// messageSender stores messages that name their hub themselves, each as a batch of one.
type messageSender struct{ to *broker.Publisher }

// Send stores messages as one batch.
func (s *messageSender) Send(ms []*message.Message, done func(error)) {
	format, raw := message.FormatAMQP, ms[0].Bytes()
	if len(ms) > 1 {
		format, raw = message.FormatBatch, message.AppendBatch(nil, ms...)
	}
	stored, a, err := message.AppendEvents(nil, format, raw)
	if err != nil {
		done(err)
		return
	}
	e := broker.Events{Raw: stored, Count: a.Count}
	if a.HasKey {
		e.Key = &a.Key
	}
	s.to.Publish(e, done)
}

func (s *messageSender) Close() {}
