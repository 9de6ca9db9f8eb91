// SPDX-License-Identifier: Apache-2.0

package queueserver

import "github.com/triagemq/triagemq/internal/engine"

// task is a command made of functions, for what is not on the hot path. do
// runs on the shard's goroutine; done, if there is one, gets its error when what
// it wrote is durable, and onDropped a command that was never applied.
type task struct {
	s         *Shard
	do        func(*Shard) error
	done      func(error)
	onDropped func(error)
}

// push posts a task. The callers that wait for tasks bound how many there are.
func (s *Shard) push(t *task) error {
	t.s = s
	return s.SubmitReserved(t)
}

// Apply implements [engine.Command].
func (t *task) Apply(tx *engine.Tx) {
	if err := t.do(t.s); t.done != nil {
		tx.Reply(engine.ReplyFunc(t.done), err)
	}
}

// Fail implements [engine.Command].
func (t *task) Fail(err error) {
	switch {
	case t.onDropped != nil:
		t.onDropped(err)
	case t.done != nil:
		t.done(err)
	}
}

// inSteps returns an operation of the shard that is done in steps. It takes turns with those
// about other entities; zero is none.
func (s *Shard) inSteps(about ID, step func(*Shard) (done bool, err error), done func(error)) *engine.Steps {
	return &engine.Steps{About: uint64(about), Step: func(*engine.Tx) (bool, error) { return step(s) }, Done: done}
}
