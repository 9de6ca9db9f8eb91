// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Tx is how the tests of this package reach the machines of a shard.
type Tx struct{ s *Shard }

func (tx *Tx) Now() time.Time { return tx.s.tx.Now() }

func (tx *Tx) Visits() int { return tx.s.opts.VisitStep }

func (tx *Tx) Apply(id ID, part SubQueue, fn func(*queue.Queue, *queue.Effects) error) error {
	return tx.s.Manual().Apply(QueueID{id, part}, fn)
}

func (tx *Tx) Inspect(id ID, part SubQueue) (*queue.Queue, error) {
	return tx.s.inspect(QueueID{id, part})
}

func (tx *Tx) Delivery(id ID, part SubQueue, d queue.Delivery) (Delivery, error) {
	return tx.s.Manual().Delivery(QueueID{id, part}, d)
}

func (tx *Tx) Note(id ID, note []byte) error { return tx.s.note(id, note) }

func (tx *Tx) Observe(id ID, part SubQueue, o Observer) error {
	return tx.s.Manual().Observe(QueueID{id, part}, o)
}

// testOp is an operation that a test makes up.
type testOp func(*Tx) (done bool, err error)

func (o testOp) begin(*Shard, *struct{}) work {
	return func(s *Shard) (bool, error) { return o(&Tx{s}) }
}

func (s *Shard) Look(fn func(*Tx)) { fn(&Tx{s}) }

func (s *Shard) Observe(id ID, part SubQueue, o Observer) error {
	return (&Tx{s}).Observe(id, part, o)
}

func (s *Shard) Call(ctx context.Context, fn func(*Tx) error) error {
	return s.CallInSteps(ctx, func(tx *Tx) (bool, error) { return true, fn(tx) })
}

func (s *Shard) CallInSteps(ctx context.Context, step func(*Tx) (bool, error)) error {
	_, err := Do(ctx, s, testOp(step))
	return err
}

func (s *Shard) PostInSteps(step func(*Tx) (bool, error), done func(error)) error {
	return Post(s, testOp(step), func(_ struct{}, err error) { done(err) })
}

func (s *Shard) Define(def Definition, cfgs map[SubQueue]queue.Config, done func(ID, error)) error {
	return Post(s, Define{def, cfgs}, done)
}

func (s *Shard) Redefine(id ID, meta []byte, cfgs map[SubQueue]queue.Config, done func(error)) error {
	return Post(s, Configure{id, meta, cfgs}, func(_ struct{}, err error) { done(err) })
}

func (s *Shard) Drop(ids []ID, done func(error)) error {
	return Post(s, Drop{ids}, func(_ struct{}, err error) { done(err) })
}
