// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Verdict is what a consumer decides about a message.
type Verdict uint8

// The verdicts.
const (
	Complete Verdict = iota
	Abandon          // failed: counts toward the dead letters
	Release          // not started: does not count
	Defer
	Reject // to the dead letters
)

// Settle decides about messages of one queue.
type Settle struct {
	ID      ID
	Part    Part
	Tokens  []queue.Token
	Verdict Verdict
	// Reason and Description are written into a rejected message.
	Reason, Description string
	// Properties are merged into a message that is abandoned, deferred or
	// rejected.
	Properties []message.Change
	// Done learns, when all is durable, nil if every token was good, else an
	// error or nil for each. It runs on the shard's goroutine. Nil says that
	// nobody waits: the settlement may then take a moment longer to the disk.
	Done func(errs []error)

	errs []error // the shard's own: what to tell Done
}

// Settle posts a Settle; it never blocks.
func (s *Shard) Settle(settle *Settle) error { return s.mail.push((*settling)(settle)) }

type settling Settle

func (o *settling) fail(err error) {
	if o.Done == nil {
		return
	}
	errs := make([]error, len(o.Tokens))
	for i := range errs {
		errs[i] = err
	}
	o.Done(errs)
}

func (o *settling) run(s *Shard) {
	sl, err := s.slot(o.ID, o.Part)
	if err != nil {
		o.fail(err)
		return
	}
	for i, t := range o.Tokens {
		m, err := o.one(s, sl, t)
		if err != nil {
			if o.errs == nil {
				o.errs = make([]error, len(o.Tokens))
			}
			o.errs[i] = err
			continue
		}
		if o.Verdict == Release {
			sl.givenBack(t)
		}
		if sl.observer != nil {
			sl.observer.Settled(s.now, o.Verdict, m)
		}
		if s.eff.Size() > s.groupLimit { // each is settled by itself: many need not be one group
			s.absorb(sl)
			s.filled()
		}
	}
	s.absorb(sl)
	if o.Done != nil {
		s.then(o, nil)
	}
}

func (o *settling) answer(err error) {
	if err != nil {
		o.fail(err)
		return
	}
	o.Done(o.errs)
}

func (o *settling) one(s *Shard, sl *slot, t queue.Token) (queue.Settled, error) {
	// A settlement that is refused must leave the message as it was.
	allowed := o.Verdict != Reject || !sl.q.Config().IsDead
	if len(o.Properties) > 0 && allowed && o.Verdict != Complete && o.Verdict != Release {
		if err := s.rewrite(sl, t, o.Properties); err != nil {
			return queue.Settled{}, err
		}
	}
	switch o.Verdict {
	case Complete:
		return sl.q.Complete(s.now, t, &s.eff)
	case Abandon:
		return sl.q.Abandon(s.now, t, &s.eff)
	case Release:
		return sl.q.Release(s.now, t, &s.eff)
	case Defer:
		return sl.q.Defer(s.now, t, &s.eff)
	case Reject:
		return sl.q.Reject(s.now, t, o.Reason, o.Description, &s.eff)
	}
	return queue.Settled{}, errors.New("shard: unknown verdict")
}

// rewrite merges properties into a locked message. A token that turns out to be
// void leaves a body that nothing refers to.
func (s *Shard) rewrite(sl *slot, t queue.Token, set []message.Change) error {
	d, ok := sl.q.Lookup(t.Seq)
	if !ok || d.State != queue.Locked {
		_, err := sl.q.Release(s.now, t, &s.eff) // holds nothing, so this only says what is lost
		return err
	}
	m, err := s.loadBody(d.Body)
	if err != nil {
		return err
	}
	ref, err := s.body(m.Edit(message.Edit{Properties: set}))
	if err != nil {
		return err
	}
	return sl.q.Rewrite(s.now, t, ref, &s.eff)
}

// explained returns a dead letter with the reason written into it.
func (s *Shard) explained(d queue.Dead) ([]byte, error) {
	m, err := s.loadBody(d.Body)
	if err != nil {
		return nil, err
	}
	return m.Edit(message.Edit{Properties: []message.Change{
		{Name: "DeadLetterReason", Value: codec.String(d.Reason)},
		{Name: "DeadLetterErrorDescription", Value: codec.String(d.Description)},
	}}), nil
}
