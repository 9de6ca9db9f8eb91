// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"errors"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// maxBatchSize is what clients may put in one batch however large a single
	// message may be; it is Azure's.
	maxBatchSize = 1 << 20

	propMaxBatchSize = names.MaxBatchSize
)

// sender is a link on which the peer sends to an entity.
type sender struct {
	c    *links
	link *endpoint.Link
	path string
	to   *broker.Sender

	window azure.Window
	batch  [1]*message.Message // scratch of transfer
}

func (c *links) attachSender(l *endpoint.Link, path string) error {
	if err := c.Require(access.Send, path); err != nil {
		return err
	}
	to, err := c.broker.OpenSender(path, c.Sending())
	if err != nil {
		return err
	}
	s := &sender{c: c, link: l, path: path, to: to, window: azure.NewWindow(c.Unsynced().Limit())}
	c.Attached(l, s)
	if err := s.Check(); err != nil { // what changed before we were notified of changes
		return err
	}
	size := to.MaxMessageSize()
	l.Accept(endpoint.Accept{
		MaxMessageSize: uint64(size),
		Credit:         azure.SenderCredit,
		Properties:     batchSizeProperty(size),
	})
	return nil
}

// batchSizeProperty bounds batches on links whose messages may be larger. The Go
// SDK builds its batches against it.
func batchSizeProperty(size int64) []byte {
	if size <= maxBatchSize {
		return nil
	}
	b, at := codec.BeginMap(nil)
	b = codec.AppendSymbol(b, propMaxBatchSize)
	b = codec.AppendUlong(b, maxBatchSize)
	return codec.EndMap(b, at, 1)
}

// transfer sends a message, or a batch as a whole. The answer comes as an event,
// when the broker has made it durable.
func (s *sender) Transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, s.c.TakeCharge()
	if n, changed := s.window.After(len(in.Payload)); changed {
		s.link.SetWindow(n)
	}
	ms, err := s.c.Unpack(s.batch[:0], in, s.path, s.c.Arrived())
	defer clear(ms)
	if err != nil {
		s.c.Unsynced().Release(charge)
		s.answer(d, err)
		return
	}
	s.to.Send(ms, func(err error) {
		s.c.Post(azure.Event{To: s, In: d, Charge: charge, Err: err})
	})
}

// Handle answers a delivery, when the broker has made it durable.
func (s *sender) Handle(e *azure.Event) {
	s.answer(e.In, e.Err)
}

// answer tells the peer what became of a delivery. One that is too large costs
// the sender its link, as it should have known from the attach.
func (s *sender) answer(d endpoint.Delivery, err error) {
	if err == nil {
		s.link.Settle(d, frame.Accepted())
		return
	}
	we := s.c.WireError(s.path, err)
	s.link.Settle(d, frame.Rejected(we))
	if errors.Is(err, broker.ErrTooLarge) {
		s.link.Detach(we)
	}
}

// Messages implements azure.Storer.
func (s *sender) Messages(d endpoint.Arriving) int { return wire.Messages(d) }

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
func (s *sender) Detached()                     { s.to.Close() }
