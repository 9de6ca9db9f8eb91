// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// ReasonUnreadable is the reason of a dead letter whose body cannot be read, and
// the name of a property of the message that stands in for it.
const ReasonUnreadable = "MessageUnreadable"

// describeUnreadable is what goes with it. The cause may name files, and is told to
// the operator alone.
const describeUnreadable = "The body of the message could not be read from the disk of the broker. Its log says why."

// maxReason is how many characters of a reason, and of its description, are kept,
// as in Service Bus: what a full disk can bear.
const maxReason = 4096

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
	if err := hq.q.DeadLetter(s.tx.Now(), seq, t, ReasonUnreadable, describeUnreadable, s.out(hq)); err != nil {
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

// reason stores why messages are dead letters. If there is no room even for that,
// they are dead letters without a reason.
func (s *Shard) reason(reason, description string) queue.Ref {
	if reason == "" && description == "" {
		return queue.Ref{}
	}
	var d message.Draft
	for _, p := range []struct{ name, text string }{
		{message.PropertyDeadLetterReason, reason}, {message.PropertyDeadLetterDescription, description},
	} {
		if p.text != "" {
			d.Application = append(d.Application, message.Pair{Name: p.name, Value: codec.String(clip(p.text))})
		}
	}
	ref, err := s.tx.StoreOne(d.Encode(nil))
	if err != nil {
		return queue.Ref{}
	}
	return ref
}

// clip returns at most maxReason characters of a text.
func clip(text string) string {
	if len(text) <= maxReason {
		return text
	}
	n := 0
	for i := range text {
		if n == maxReason {
			return text[:i]
		}
		n++
	}
	return text
}

// withReason returns a dead letter with its reason among its properties.
func withReason(m, reason *message.Message) (*message.Message, error) {
	var set []message.Change
	for name, v := range reason.Properties() {
		set = append(set, message.Change{Name: name, Value: v})
	}
	return message.ParseStored(m.Edit(message.Edit{Properties: set}))
}

// standIn returns a message that is shown in place of one that cannot be read: it
// has the reason, if that is known, and an empty body. A property tells it from a
// message that is empty.
func standIn(reason *message.Message) *message.Message {
	d := message.Draft{Body: []byte{}, Application: []message.Pair{{Name: ReasonUnreadable, Value: codec.Bool(true)}}}
	if reason == nil {
		d.Application = append(d.Application,
			message.Pair{Name: message.PropertyDeadLetterReason, Value: codec.String(ReasonUnreadable)},
			message.Pair{Name: message.PropertyDeadLetterDescription, Value: codec.String(describeUnreadable)})
		return d.Message()
	}
	for name, v := range reason.Properties() {
		d.Application = append(d.Application, message.Pair{Name: name, Value: v})
	}
	return d.Message()
}
