// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"

	"github.com/triagemq/triagemq/internal/invariant"
	"github.com/triagemq/triagemq/internal/queue"
)

// An operation on a shard is a value: a request with plain fields, and its reply.
// Neither has functions or pointers into the process, so that another process could
// send the one and get the other. Send and Settle are on the hot path and have calls
// of their own; all others are a Request.
//
//	caller's goroutine    Do ──► begin ──► mailbox                    ──► reply
//	shard's goroutine                        work ─► … ─► work ─► durable ─┘
//
// An operation first checks, and changes nothing; then it does what cannot fail. What
// has no bound is done in steps; see package engine.

// QueueID names one of the queues of an entity.
type QueueID struct {
	Entity   ID
	SubQueue SubQueue
}

// Request is an operation as a value; R is its reply.
type Request[R any] interface {
	// begin prepares the operation, on the goroutine of the caller. What it returns
	// fills in the reply, which is not read before the last step.
	begin(s *Shard, r *R) work
}

// aboutOne is a request that takes several steps, and is about one entity.
type aboutOne interface{ about() ID }

// aboutOf returns the entity that a request is about; zero if there is no single one.
func aboutOf(q any) ID {
	if one, ok := q.(aboutOne); ok {
		return one.about()
	}
	return 0
}

func (o Peek) about() ID              { return o.Queue.Entity }
func (o Renew) about() ID             { return o.Queue.Entity }
func (o Save) about() ID              { return o.Queue.Entity }
func (o CheckSessionLocks) about() ID { return o.Queue.Entity }
func (o CancelScheduled) about() ID   { return o.Queue.Entity }
func (o LockDeferred) about() ID      { return o.Queue.Entity }
func (o LockMessages) about() ID      { return o.Queue.Entity }
func (o Purge) about() ID             { return o.Queue.Entity }
func (o Remove) about() ID            { return o.Queue.Entity }
func (o ListSessions) about() ID      { return o.Queue.Entity }
func (o Explain) about() ID           { return o.Queue.Entity }
func (o Inspect) about() ID           { return o.ID }
func (o Reclassify) about() ID        { return o.ID }
func (o AwaitOrder) about() ID        { return o.ID }

// work is one step of an operation, on the shard's goroutine. It is called again
// until it is done or has failed.
type work func(s *Shard) (done bool, err error)

// once is an operation that takes one step.
func once(fn func(*Shard) error) work {
	return func(s *Shard) (bool, error) { return true, fn(s) }
}

// atOnce is how many messages an operation may name that is done in its turn among the
// commands.
const atOnce = 256

// onceOf is once for an operation that names n messages. If they are many it is not done in its
// turn among the commands, but as those that take several steps: one of them in each step
// of the shard. So however many callers ask for that at once, the others wait for one of them.
func onceOf(n int, fn func(*Shard) error) work {
	waited := n <= atOnce
	return func(s *Shard) (bool, error) {
		if !waited {
			waited = true
			return false, nil
		}
		return true, fn(s)
	}
}

// Do has a shard carry out an operation and returns the reply when everything it did
// is durable. If ctx ends first there are no more steps: the reply is what was found
// so far, and what was done stays done.
func Do[Q Request[R], R any](ctx context.Context, s *Shard, q Q) (R, error) {
	r := new(R)
	run := q.begin(s, r)
	answer := make(chan error, 1)
	turn := make(chan struct{}, 1) // full while a step runs, and when there are to be no more
	err := s.SubmitReserved(s.inSteps(aboutOf(q), func(s *Shard) (bool, error) {
		select {
		case turn <- struct{}{}:
		default:
			return true, nil // its caller does not wait any more
		}
		done, err := run(s)
		<-turn
		return done, err
	}, func(err error) { answer <- err }))
	if err != nil {
		return *r, err
	}
	select {
	case err := <-answer:
		checkCode(err)
		return *r, err
	case <-ctx.Done():
	}
	turn <- struct{}{} // waits for the end of a step at most
	run = nil          // what the request names leaves memory now, not when it would be its turn
	return *r, context.Cause(ctx)
}

// Finish is Do for an operation that is not canceled: its caller waits
// until the shard has answered, or has stopped.
func Finish[Q Request[R], R any](s *Shard, q Q) (R, error) {
	type answer struct {
		reply R
		err   error
	}
	got := make(chan answer, 1)
	if err := Post(s, q, func(r R, err error) { got <- answer{r, err} }); err != nil {
		return *new(R), err
	}
	a := <-got
	return a.reply, a.err
}

// Post is Do for callers that cannot wait: done, which may be nil, gets what Do would
// return, on the shard's goroutine.
func Post[Q Request[R], R any](s *Shard, q Q, done func(R, error)) error {
	r := new(R)
	op := s.inSteps(aboutOf(q), q.begin(s, r), nil)
	if done != nil {
		op.Done = func(err error) {
			checkCode(err)
			done(*r, err)
		}
	}
	return s.SubmitReserved(op)
}

// checkCode finds errors that could not be sent to another process.
func checkCode(err error) {
	if invariant.Enabled && err != nil {
		invariant.Assert(codeOf(err) != "", "an operation failed with an error that has no code: %v", err)
	}
}

// use finds a queue for an operation that counts as use of its entity.
func (s *Shard) use(id QueueID) (*hostedQueue, error) {
	hq, err := s.hostedQueue(id.Entity, id.SubQueue)
	if err == nil {
		hq.entity.used = s.tx.Now()
	}
	return hq, err
}

// change has fn change a queue. What it does joins the group of the step, also if fn
// returns an error.
func (s *Shard) change(id QueueID, fn func(q *queue.Queue, out *queue.Effects) error) error {
	hq, err := s.use(id)
	if err != nil {
		return err
	}
	err = fn(hq.q, s.out(hq))
	s.collectEffects(hq)
	return err
}

// inspect returns a queue that is only looked at.
func (s *Shard) inspect(id QueueID) (*queue.Queue, error) {
	hq, err := s.use(id)
	if err != nil {
		return nil, err
	}
	return hq.q, nil
}
