// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Delivery is a message handed out, or shown.
type Delivery struct {
	queue.Delivery

	msg  *message.Message // nil until loaded
	load func(queue.SeqNo, queue.Ref) (*message.Message, error)
}

// Message returns the message itself. It may read the disk, so it must not be
// called from a Sink's methods. An error that wraps queue.ErrNotFound means that
// the message was settled meanwhile: drop the delivery.
func (d *Delivery) Message() (*message.Message, error) {
	if d.msg != nil {
		return d.msg, nil
	}
	m, err := d.load(d.Seq, d.Body)
	if err != nil {
		return nil, err
	}
	d.msg = m
	return m, nil
}

// Loaded reports whether Message returns at once.
func (d *Delivery) Loaded() bool { return d.msg != nil }

// delivery dresses a machine's delivery with its body, or the way to it.
func (s *Shard) delivery(sl *slot, qd queue.Delivery) Delivery {
	return Delivery{Delivery: qd, msg: s.cache.get(qd.Body), load: sl.load}
}

// loader returns a function that reads bodies of the slot from any goroutine. A
// body that was moved meanwhile is looked for again through its number.
func (s *Shard) loader(sl *slot) func(queue.SeqNo, queue.Ref) (*message.Message, error) {
	return func(seq queue.SeqNo, ref queue.Ref) (*message.Message, error) {
		for {
			m, err := readBody(s.journal, ref)
			if !errors.Is(err, journal.ErrGone) {
				return m, err
			}
			again := make(chan queue.Ref, 1)
			if err := s.mail.push(&task{
				do: func(*Shard) error {
					d, _ := sl.q.Lookup(seq)
					again <- d.Body
					return nil
				},
				lost: func(error) { again <- queue.Ref{} },
			}); err != nil {
				return nil, err
			}
			s.lookups.Add(1)
			moved := <-again
			if moved == (queue.Ref{}) || moved == ref {
				return nil, queue.ErrNotFound
			}
			ref = moved
		}
	}
}
