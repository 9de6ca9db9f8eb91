// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Sender sends messages to one queue or topic.
type Sender struct {
	b       *Broker
	n       *catalog.Entity
	options SenderOptions
}

// OpenSender returns a sender to a queue or topic.
func (b *Broker) OpenSender(addr string, o SenderOptions) (*Sender, error) {
	n, err := b.Writable(addr)
	if err != nil {
		return nil, err
	}
	if !n.Definition().Properties.Status.CanSend() {
		return nil, fmt.Errorf("%w: sending to %q is disabled", ErrDisabled, n.Path)
	}
	n.Touch(b.clock.Now())
	return &Sender{b: b, n: n, options: o}, nil
}

// ID is that of the entity; see catalog.Address.
func (s *Sender) ID() uint64 { return uint64(s.n.ID) }

// MaxMessageSize is the size in bytes of the largest message that the entity accepts.
func (s *Sender) MaxMessageSize() int64 { return s.n.Definition().MaxMessage() }

// Unsynced is how much memory a batch of messages with size bytes together takes until it
// is durable: its bytes, those bytes once more in the journal's buffer, and for each message an
// overhead. A caller should bound the sum, and charge it before it takes the messages apart.
// What copies take beyond that is charged to SenderOptions.Unsynced.
func Unsynced(size, messages int) int64 { return 2*int64(size) + int64(messages)<<10 }

// Send stores a batch, all of it or nothing. It waits for nothing but, if rules or conditions
// are expensive, for a processor that may evaluate them. It does not retain the slice; done is called exactly once, when the batch is durable or rejected. A message
// with a scheduled time is delivered then.
func (s *Sender) Send(batch []*message.Message, done func(error)) {
	turn := s.b.TurnFor(s.n.Path, len(batch))
	defer turn.End()
	if err := catalog.CheckBatch(batch); err != nil {
		done(err)
		return
	}
	batch = s.b.prepare(s.n, s.options, batch)
	s.b.Catalog.Send(s.n, batch, catalog.SendOptions{Unsynced: s.options.Unsynced, Waits: true, Turn: turn}, func(_ []queue.SeqNo, err error) { done(err) })
}

// Close ends the sender.
func (s *Sender) Close() {}

// Schedule stores messages that have a scheduled time and returns their sequence numbers.
func (b *Broker) Schedule(ctx context.Context, addr string, batch []*message.Message, o SenderOptions) ([]queue.SeqNo, error) {
	return b.ScheduleThen(ctx, addr, batch, o, func() {})
}

// ScheduleThen is Schedule for a caller that has to know when the batch is durable or
// refused: then it calls over, once, which may be after it has returned because ctx ended.
func (b *Broker) ScheduleThen(ctx context.Context, addr string, batch []*message.Message, o SenderOptions, over func()) ([]queue.SeqNo, error) {
	n, err := b.Writable(addr)
	if err != nil {
		over()
		return nil, err
	}
	turn := b.TurnFor(n.Path, len(batch))
	if err := catalog.CheckBatch(batch); err != nil {
		turn.End()
		over()
		return nil, err
	}
	type answer struct {
		seqs []queue.SeqNo
		err  error
	}
	got := make(chan answer, 1)
	b.Catalog.Send(n, b.prepare(n, o, batch), catalog.SendOptions{Unsynced: o.Unsynced, Waits: true, Turn: turn}, func(seqs []queue.SeqNo, err error) {
		over()
		got <- answer{append([]queue.SeqNo(nil), seqs...), err}
	})
	turn.End()
	select {
	case a := <-got:
		return a.seqs, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// CancelScheduled removes scheduled messages, all of them or none. A sequence number that
// occurs twice counts once.
func (b *Broker) CancelScheduled(ctx context.Context, addr string, seqs []queue.SeqNo) error {
	n, err := b.Writable(addr)
	if err != nil {
		return err
	}
	n.Touch(b.clock.Now())
	_, err = queueserver.Do(ctx, n.Shard, queueserver.CancelScheduled{Queue: n.QueueID(queueserver.Main), Seqs: seqs})
	return err
}
