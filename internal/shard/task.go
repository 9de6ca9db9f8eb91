// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// task is an operation made of functions, for what is not on the hot path. do
// runs on the shard's goroutine; done, if there is one, gets its error when what
// it wrote is durable, and lost an operation that was never run.
type task struct {
	do   func(*Shard) error
	done func(error)
	lost func(error)
}

func (t *task) run(s *Shard) {
	if err := t.do(s); t.done != nil {
		s.then(answerFunc(t.done), err)
	}
}

func (t *task) fail(err error) {
	switch {
	case t.lost != nil:
		t.lost(err)
	case t.done != nil:
		t.done(err)
	}
}

// Tx lets a caller of Call use the machines of a shard. It is valid during the
// call only.
type Tx struct {
	s *Shard
}

// Now is the time of the step.
func (tx *Tx) Now() time.Time { return tx.s.now }

// Call runs fn on the shard's goroutine and returns its error when everything fn
// did is durable. If ctx ends first, fn has either been run to its end or never
// will be: in both cases what it wrote for its caller can be read.
func (s *Shard) Call(ctx context.Context, fn func(*Tx) error) error {
	answer := make(chan error, 1)
	turn := make(chan struct{}, 1) // whoever fills it decides: fn runs, or it does not
	ran := make(chan struct{})
	err := s.mail.push(&task{
		do: func(s *Shard) error {
			defer close(ran)
			select {
			case turn <- struct{}{}:
				return fn(&Tx{s})
			default:
				return nil // nobody waits for it any more
			}
		},
		done: func(err error) { answer <- err },
	})
	if err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case turn <- struct{}{}:
	default:
		<-ran // it has begun, and soon ends
	}
	return context.Cause(ctx)
}

// Apply has fn change the queue of a part; what it does joins the group of the
// step, also if fn returns an error: the queue has changed and its records must
// follow. So fn must find out whether it can do all it is asked for before it
// changes anything.
func (tx *Tx) Apply(id ID, part Part, fn func(q *queue.Queue, out *queue.Effects) error) error {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return err
	}
	err = fn(sl.q, tx.s.out(sl))
	sl.reclassed()
	tx.s.absorb(sl)
	return err
}

// Inspect shows the queue of a part without changing it.
func (tx *Tx) Inspect(id ID, part Part) (*queue.Queue, error) {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return nil, err
	}
	return sl.q, nil
}

// Consumers returns how many consumers are attached to a part.
func (tx *Tx) Consumers(id ID, part Part) int {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return 0
	}
	return len(sl.consumers)
}

// Receivers returns how many of the consumers are clients'.
func (tx *Tx) Receivers(id ID, part Part) (n int) {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return 0
	}
	for _, c := range sl.consumers {
		if !c.internal {
			n++
		}
	}
	return n
}

// Delivery dresses a delivery taken or peeked in the call.
func (tx *Tx) Delivery(id ID, part Part, qd queue.Delivery) (Delivery, error) {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return Delivery{}, err
	}
	return tx.s.delivery(sl, qd), nil
}

// Store appends a body that the call is about to refer to.
func (tx *Tx) Store(raw []byte) (queue.Ref, error) { return tx.s.body(raw) }
