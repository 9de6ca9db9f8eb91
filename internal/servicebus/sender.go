// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bytes"
	"errors"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// maxBatchSize is what clients may put in one batch however large a single
	// message may be; it is Azure's.
	maxBatchSize = 1 << 20

	propMaxBatchSize = "com.microsoft:max-message-batch-size"
)

// sender is a link on which the peer sends to an entity.
type sender struct {
	c    *conn
	link *endpoint.Link
	path string
	to   *broker.Sender

	window window
	batch  [1]*message.Message // scratch of transfer
}

func (c *conn) attachSender(l *endpoint.Link) error {
	path := pathOf(l.Address())
	if err := c.grants.require(access.Send, path); err != nil {
		return err
	}
	to, err := c.svc.broker.OpenSender(path, c.sending)
	if err != nil {
		return err
	}
	s := &sender{c: c, link: l, path: path, to: to, window: newWindow(c.unsynced.account.Limit())}
	c.attached(l, s)
	if err := s.check(); err != nil { // what changed before we were told of changes
		return err
	}
	size := to.MaxMessageSize()
	l.Accept(endpoint.Accept{
		MaxMessageSize: uint64(size),
		Credit:         senderWindow,
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
func (s *sender) transfer(in *endpoint.Incoming) {
	d, charge := in.Delivery, s.c.unsynced.take()
	if n, changed := s.window.after(len(in.Payload)); changed {
		s.link.SetWindow(n)
	}
	ms, err := unpack(s.batch[:0], in)
	defer clear(ms)
	if err != nil {
		s.c.unsynced.account.Release(charge)
		s.answer(d, err)
		return
	}
	s.to.Send(ms, func(err error) {
		s.c.out.post(event{to: s, kind: eventAnswer, in: d, charge: charge, err: err})
	})
}

// unpack returns the messages of a transfer, with bytes of their own, appended to
// dst.
func unpack(dst []*message.Message, in *endpoint.Incoming) ([]*message.Message, error) {
	if in.State.Kind == frame.StateTransactional {
		return nil, endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
	}
	payload := bytes.Clone(in.Payload)
	switch message.Format(in.Format) {
	case message.FormatAMQP:
		m, err := message.Parse(payload)
		return append(dst, m), err
	case message.FormatBatch:
		ms := dst
		for m, err := range message.Batch(payload) {
			if err != nil {
				return nil, err
			}
			ms = append(ms, m)
		}
		return ms, nil
	}
	return nil, endpoint.Errorf(endpoint.CondNotImplemented, "Message format 0x%x is not known here.", in.Format)
}

func (s *sender) happened(e *event) {
	s.c.unsynced.answer(e.charge)
	s.answer(e.in, e.err)
}

// answer tells the peer what became of a delivery. One that is too large costs
// the sender its link, as it should have known from the attach.
func (s *sender) answer(d endpoint.Delivery, err error) {
	if err == nil {
		s.link.Settle(d, frame.Accepted())
		return
	}
	we := s.c.wireError(s.path, err)
	s.link.Settle(d, frame.Rejected(we))
	if errors.Is(err, broker.ErrTooLarge) {
		s.c.detach(s.link, we)
	}
}

// check implements node.
func (s *sender) check() error {
	if err := s.c.isStill(s.path, s.to.ID()); err != nil {
		return err
	}
	return s.c.grants.require(access.Send, s.path)
}

func (s *sender) credit()                       {}
func (s *sender) disposition(*endpoint.Outcome) {}
func (s *sender) paths() []string               { return []string{s.path} }
func (s *sender) detached()                     { s.to.Close() }
