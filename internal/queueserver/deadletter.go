// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// ReasonUnreadable is the reason of a dead letter whose body cannot be read, and the
// name of a property of its placeholder.
const ReasonUnreadable = bodies.ReasonUnreadable

// Damage is a body that cannot be read.
type Damage struct {
	ID       ID
	SubQueue SubQueue
	Name     string // of the entity
	Seq      queue.SeqNo
	Err      error
}

// OnDamage has fn told of every message that became a dead letter because its body
// cannot be read. It is for the owner that has just opened the shard, before Run;
// fn is called on the shard's goroutine and must return at once.
func (s *Shard) OnDamage(fn func(Damage)) { s.onDamage = fn }

// quarantine makes a dead letter of a message whose body cannot be read, unless
// somebody other than the holder of the token has it.
func (s *Shard) quarantine(hq *hostedQueue, seq queue.SeqNo, t queue.Token, cause error) error {
	if hq.dropped() {
		return queue.ErrNotFound
	}
	if err := hq.q.DeadLetter(s.tx.Now(), seq, t, ReasonUnreadable, bodies.DescribeUnreadable, s.out(hq)); err != nil {
		return err
	}
	s.collectEffects(hq)
	if s.onDamage != nil {
		s.onDamage(Damage{ID: hq.entity.ID, SubQueue: hq.part, Name: hq.entity.Name, Seq: seq, Err: cause})
	}
	return nil
}

// deadLetterAll moves messages to the dead letters of their entity. Each keeps its
// body; the reason is stored beside it, once for neighbours that have the same.
func (s *Shard) deadLetterAll(from *hostedQueue, dead []queue.DeadLetter) {
	var why queue.Ref
	for i := range dead {
		d := &dead[i]
		if i == 0 || d.Reason != dead[i-1].Reason || d.Description != dead[i-1].Description {
			why = s.reason(d.Reason, d.Description)
		}
		if s.tx.Failed() != nil {
			return
		}
		s.deadLetter(from, d, why)
	}
}

func (s *Shard) deadLetter(from *hostedQueue, d *queue.DeadLetter, why queue.Ref) {
	to := from.entity.parts[DeadLetter]
	a := queue.Arrival{
		Body: d.Body, Level: d.Level, Class: d.Class, Key: d.Key,
		Session: d.Session, InSession: d.InSession, Reason: why,
		At: d.EnqueuedAt, OrderTime: d.OrderTime, Origin: d.Origin, Failures: d.Failures, Hops: d.Hops,
	}
	var seq [1]queue.SeqNo
	if err := to.q.Enqueue(s.tx.Now(), []queue.Arrival{a}, seq[:], s.out(to)); err != nil {
		s.tx.Stop(fmt.Errorf("dead-letter message %d of %s: %w", d.Seq, from.entity.Name, err))
		return
	}
	s.noteAssigned(to, seq[0])
	s.collectEffects(to)
}

// reason stores why messages are dead letters. If there is no space even for that,
// they are dead letters without a reason.
func (s *Shard) reason(reason, description string) queue.Ref {
	raw := bodies.Reason(reason, description)
	if raw == nil {
		return queue.Ref{}
	}
	ref, err := s.tx.StoreOne(raw)
	if err != nil {
		return queue.Ref{}
	}
	return ref
}
