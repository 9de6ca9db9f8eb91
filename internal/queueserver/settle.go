// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// Disposition is what a consumer decides about a message.
type Disposition uint8

// The dispositions.
const (
	Complete Disposition = iota
	Abandon              // failed: counts toward the dead letters
	Release              // handed back: does not count
	Defer
	Reject // to the dead letters
)

// Settle decides about messages of one queue.
type Settle struct {
	ID          ID
	SubQueue    SubQueue
	Tokens      []queue.Token
	Disposition Disposition
	// Consumer is which consumer settles what it got; zero is none. If it is detached
	// afterwards, its session is released when the settlement is done.
	Consumer ConsumerID
	// Reason and Description are written into a rejected message.
	Reason, Description string
	// RetryAfter is how long nobody gets a message that is abandoned; zero or less is at once.
	RetryAfter time.Duration
	// Properties are merged into a message that is not completed.
	Properties []message.Change
	// Done gets, when all is durable, nil if every token was valid, else an
	// error or nil for each. It runs on the shard's goroutine. Without Done no caller
	// waits, and the settlement may be written a few milliseconds later.
	Done func(errs []error)

	// Set by the shard: itself, and the errors for Done.
	shard *Shard
	errs  []error
}

// Settle posts a Settle; it never blocks.
func (s *Shard) Settle(settle *Settle) error {
	settle.shard = s
	return s.SubmitReserved((*settling)(settle))
}

type settling Settle

// few is how many messages at most are settled, or returned, between two calls of
// CommitIfFull.
const few = 64

// Fail implements [engine.Command].
func (o *settling) Fail(err error) {
	if o.Done == nil {
		return
	}
	errs := make([]error, len(o.Tokens))
	for i := range errs {
		errs[i] = err
	}
	o.Done(errs)
}

// Refusable implements [engine.Refusable].
func (o *settling) Refusable() bool { return o.Done != nil }

// frees reports whether the settlement lets go of messages, or at least takes no space.
func (o *settling) frees() bool { return o.Disposition == Complete || o.Disposition == Release }

// Apply implements [engine.Command].
func (o *settling) Apply(*engine.Tx) {
	s := o.shard
	hq, err := s.hostedQueue(o.ID, o.SubQueue)
	if err != nil {
		o.Fail(err)
		return
	}
	switch e := (&editing{o: o, queue: hq}); {
	case o.edits():
		e.advance(s)
		return
	case len(o.Tokens) > atOnce: // others have their turns in between
		e.pause(s, 0)
		return
	}
	for i, t := range o.Tokens {
		if i%few == 0 && !o.hasSpace(s, min(few, len(o.Tokens)-i)) {
			o.refuseFrom(i, ErrDiskFull)
			break
		}
		o.settle(s, hq, i, t)
		if i%few == few-1 { // each is settled by itself: many need not be one group
			s.collectEffects(hq)
			s.tx.CommitIfFull()
		}
	}
	o.finish(s, hq)
}

// perFailure is what it takes at most to write that a message has failed, or has become a dead
// letter, beside its reason.
const perFailure = 512

// hasSpace reports whether there is space to settle n of the messages.
func (o *settling) hasSpace(s *Shard, n int) bool {
	return o.frees() || s.tx.HasSpace(n*perFailure+bodies.ReasonSize(o.Reason, o.Description))
}

// refuseFrom refuses the i-th message and those behind it.
func (o *settling) refuseFrom(i int, err error) {
	for ; i < len(o.Tokens); i++ {
		o.refuse(i, err)
	}
}

// edits reports whether the settlement changes what is in the messages.
func (o *settling) edits() bool {
	return len(o.Properties) > 0 && o.Disposition != Complete
}

// settle decides about the i-th message.
func (o *settling) settle(s *Shard, hq *hostedQueue, i int, t queue.Token) {
	written := s.eff.Size()
	m, err := o.one(s, hq, t)
	if err != nil {
		o.refuse(i, err)
		return
	}
	if o.Disposition == Release {
		hq.recalled.Released(t)
		if s.eff.Size() > written { // the end of a durable lock: the next one may not have it before
			s.setFence(hq)
		}
		s.serveFirst(hq, t)
	}
	if hq.observer != nil {
		hq.observer.Settled(s.tx.Now(), o.Disposition, m)
	}
}

func (o *settling) refuse(i int, err error) {
	if o.errs == nil {
		o.errs = make([]error, len(o.Tokens))
	}
	o.errs[i] = err
}

// finish takes over what was settled, and answers when that is durable.
func (o *settling) finish(s *Shard, hq *hostedQueue) {
	s.collectEffects(hq)
	if o.Done != nil {
		s.tx.Reply(o, nil)
	}
}

// Reply implements [engine.Replier].
func (o *settling) Reply(err error) {
	if err != nil {
		o.Fail(err)
		return
	}
	o.Done(o.errs)
}

func (o *settling) one(s *Shard, hq *hostedQueue, t queue.Token) (queue.Settled, error) {
	switch o.Disposition {
	case Complete:
		return hq.q.Complete(s.tx.Now(), t, s.out(hq))
	case Abandon:
		if o.RetryAfter > 0 {
			return hq.q.Retry(s.tx.Now(), t, s.tx.Now().Add(o.RetryAfter), s.out(hq))
		}
		return hq.q.Abandon(s.tx.Now(), t, s.out(hq))
	case Release:
		return hq.q.Release(s.tx.Now(), t, s.out(hq))
	case Defer:
		return hq.q.Defer(s.tx.Now(), t, s.out(hq))
	case Reject:
		return hq.q.Reject(s.tx.Now(), t, o.Reason, o.Description, s.out(hq))
	}
	return queue.Settled{}, errors.New("queueserver: unknown disposition")
}
