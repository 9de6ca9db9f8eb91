// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// Delivery is a message that was delivered or peeked.
type Delivery struct {
	queue.Delivery

	msg     *message.Message // nil until loaded
	from    *hostedQueue
	removed bool // by ReceiveAndDelete: only Return brings it back
	damaged bool // msg is a placeholder for a body that cannot be read
}

// Message returns the message itself. It may read the disk and wait for the shard,
// so it must not be called from a Sink's methods. An error that wraps
// queue.ErrNotFound means that the message does not exist any more: drop the
// delivery. That includes a message whose body turns out to be unreadable: it has
// become a dead letter. For a dead letter that cannot be read a placeholder is
// returned; see Damaged.
func (d *Delivery) Message() (*message.Message, error) {
	if d.msg == nil {
		m, damaged, err := d.from.load(d.Delivery)
		if err != nil {
			return nil, err
		}
		d.msg, d.damaged = m, damaged
	}
	return d.msg, nil
}

// Loaded reports whether Message returns at once.
func (d *Delivery) Loaded() bool { return d.msg != nil }

// Unload releases the memory of the message, if it can be read again, for a delivery
// that has to wait. A removed message is kept: the journal may have freed it.
func (d *Delivery) Unload() {
	if !d.removed && !d.damaged {
		d.msg = nil
	}
}

// Damaged reports whether what Message returned has only the reason of a dead
// letter, because its body cannot be read. It may be shown, but not moved.
func (d *Delivery) Damaged() bool { return d.damaged }

// delivery returns a delivery of the machine with its body if that is cached, and else
// with the queue to read it through.
func (s *Shard) delivery(hq *hostedQueue, qd queue.Delivery) Delivery {
	d := Delivery{Delivery: qd, from: hq}
	if bodies.Alone(&qd) { // else what is beside it has to be read
		d.msg = s.cache.Get(qd.Body)
	}
	return d
}

// load reads a message from any goroutine but the shard's. A body that was moved
// meanwhile is looked for again through its number.
func (hq *hostedQueue) load(d queue.Delivery) (m *message.Message, damaged bool, err error) {
	for {
		m, damaged, err = hq.read(&d)
		if !errors.Is(err, journal.ErrFreed) {
			break
		}
		now, err := hq.lookup(d.Seq)
		switch {
		case err != nil:
			return nil, false, err
		case !bodies.Moved(&d, &now):
			return hq.unreadable(d, journal.ErrFreed)
		}
	}
	if err != nil && !errors.Is(err, journal.ErrClosed) {
		return hq.unreadable(d, err)
	}
	return m, damaged, err
}

// lookup returns what the queue knows of a message, from any goroutine but its own.
func (hq *hostedQueue) lookup(seq queue.SeqNo) (d queue.Delivery, err error) {
	err = hq.shard.within(func(*Shard) error {
		var ok bool
		if d, ok = hq.q.Lookup(seq); !ok || hq.dropped() {
			return queue.ErrNotFound
		}
		return nil
	})
	return d, err
}

// unreadable deals with a body that cannot be read, from any goroutine but the
// shard's: its message becomes a dead letter; of a dead letter a placeholder is
// returned.
func (hq *hostedQueue) unreadable(d queue.Delivery, cause error) (*message.Message, bool, error) {
	if hq.part != Main {
		return bodies.Placeholder(nil), true, nil
	}
	err := hq.shard.within(func(s *Shard) error { return s.quarantine(hq, d.Seq, d.Token, cause) })
	if err == nil || errors.Is(err, queue.ErrLocked) { // the receiver that has the lock finds out itself
		err = queue.ErrNotFound
	}
	return nil, false, errors.Join(err, cause)
}

// within runs fn on the shard's goroutine and returns its error at once: what fn
// writes need not be durable. It is called from any other goroutine.
func (s *Shard) within(fn func(*Shard) error) error {
	answer := make(chan error, 1)
	err := s.push(&task{
		do:        func(s *Shard) error { answer <- fn(s); return nil },
		onDropped: func(err error) { answer <- err },
	})
	if err != nil {
		return err
	}
	s.lookups.Add(1)
	return <-answer
}

// read reads a message with its reason, from any goroutine. For a dead letter that
// cannot be read it returns a placeholder, and damaged. ErrFreed may mean that the body
// was moved.
func (hq *hostedQueue) read(d *queue.Delivery) (m *message.Message, damaged bool, err error) {
	reads := bodies.AppendReads(make([]journal.Read, 0, 2), d)
	hq.shard.Engine.Read(hq.shard.loadCtx, reads)
	return bodies.Parse(reads, hq.part != Main)
}

// Read returns a body that the caller knows the place of, such as the state of a
// session. It may read the disk; journal.ErrFreed says that it was moved or dropped.
func (s *Shard) Read(ctx context.Context, ref queue.Ref) (*message.Message, error) {
	reads := []journal.Read{engine.ReadOf(ref)}
	s.Engine.Read(ctx, reads)
	return bodies.ParseOne(&reads[0])
}
