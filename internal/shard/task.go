// SPDX-License-Identifier: Apache-2.0

package shard

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
