// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// step gathers what the operations of one Step do, beside the records in Shard.eff.
type step struct {
	acks    []ack     // answers that wait for the group
	spare   []ack     // room for the next step's
	touched []*entity // entities with a published count to record
	awaited bool      // a delivery of the step waits for its group
}

// ack is an answer that is owed.
type ack struct {
	to  answerer
	err error
}

func (a ack) give() { a.to.answer(a.err) }

// answerer is who is owed an answer. What is on the hot path answers by a method
// of its own, so that no function has to be made for each message.
type answerer interface{ answer(error) }

// answerFunc makes a function an answerer.
type answerFunc func(error)

func (f answerFunc) answer(err error) { f(err) }

// commit is a group on its way to the disk and the answers that wait for it.
type commit struct {
	at   journal.Position
	acks []ack
}

// How long records that nobody waits for may wait for company, and how many
// bytes of them.
const (
	patience  = 5 * time.Millisecond
	lazyBytes = 64 << 10
)

// due reports whether the step has to be committed now. What nobody waits for, as
// the settlement of a consumer that wants no answer, can be appended with what
// comes next: the disk is then free for a sender who does wait.
func (s *Shard) due() bool {
	st := &s.step
	if s.eff.Count() == 0 || len(st.acks) > 0 || len(st.touched) > 0 || len(s.risen) > 0 ||
		st.awaited || s.eff.Size() > lazyBytes || s.snapshot.active() {
		return true
	}
	if s.lazy.IsZero() {
		s.lazy = s.now.Add(patience)
	}
	return !s.now.Before(s.lazy)
}

// commit appends what the step wrote and files its answers under the position
// that makes them true. Without records the answers wait for what was appended
// before: they may speak of it.
func (s *Shard) commit() {
	s.lazy = time.Time{}
	if s.failed != nil {
		// The step broke off in the middle: what it gathered may be half of
		// something, and must never reach the disk.
		for _, a := range s.step.acks {
			a.to.answer(s.failed)
		}
		s.resetStep()
		return
	}
	s.recordPublished()
	if s.eff.Count() > 0 {
		switch err := s.appendRecords(); {
		case errors.Is(err, journal.ErrFull):
			// Nothing is lost and nobody has been told anything: it stays as it is.
			s.stuck, s.retryAt = true, s.now.Add(retryFull)
			return
		case err != nil:
			s.failed = err
			for _, a := range s.step.acks {
				a.to.answer(err)
			}
			s.resetStep()
			return
		}
	}
	s.place()
	if s.tail <= s.durable {
		for _, a := range s.step.acks {
			a.give()
		}
	} else if len(s.step.acks) > 0 {
		s.waiting = append(s.waiting, commit{s.tail, s.step.lend()})
	}
	s.resetStep()
}

// retryFull is how often something is tried again for which there was no space. A
// change of the journal's status is a reason, too.
const retryFull = 200 * time.Millisecond

// retry appends the group that found no space, and reports whether it could.
func (s *Shard) retry() bool {
	s.observe(s.mail.look())
	s.stuck = false
	s.commit()
	if !s.stuck && s.snapshot.end == pending {
		s.snapshot.end = s.tail
	}
	return !s.stuck
}

// filled commits what the step has gathered if it is enough for a group. It is
// called between operations, and within those that need not be one group.
func (s *Shard) filled() {
	if s.eff.Size()+s.eff.Count()*journal.RecordSize(0) > s.groupLimit {
		s.commit()
	}
}

// few is how many messages at most are settled, or given back, before what that wrote
// is looked at by filled.
const few = 64

// resetStep forgets what the step wrote, after it was appended or given up.
func (s *Shard) resetStep() {
	s.eff.ResetRecords()
	st := &s.step
	clear(st.acks)
	st.acks = st.acks[:0]
	st.touched = st.touched[:0]
	st.awaited = false
}

// lend hands the answers of the step to a commit, and goes on with room that an
// earlier commit has given back.
func (st *step) lend() []ack {
	acks := st.acks
	st.acks, st.spare = st.spare, nil
	return acks
}

// recycle takes back what lend gave.
func (st *step) recycle(acks []ack) {
	if cap(acks) > cap(st.spare) {
		clear(acks)
		st.spare = acks[:0]
	}
}

// then answers to when everything the step has written so far is durable.
func (s *Shard) then(to answerer, err error) {
	s.step.acks = append(s.step.acks, ack{to, err})
}
