// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Observer watches one queue: it may turn arrivals away, and it learns what
// happens to messages. Its methods run on the shard's goroutine, before what they
// tell of is durable.
type Observer interface {
	// Admit decides about arrivals that the queue itself would store; there may
	// be none, if all are duplicates. An error turns all of them away; otherwise
	// the messages of evict, which must not be locked, make room for them.
	Admit(now time.Time, q *queue.Queue, as []queue.Arrival) (evict []queue.SeqNo, err error)
	// AdmitCanceled tells that arrivals which Admit has just let in are not stored
	// and evict nothing, because another queue or the disk has no room.
	AdmitCanceled(now time.Time, as []queue.Arrival)
	// Arrived tells that messages were stored, the same that Admit let in.
	Arrived(now time.Time, as []queue.Arrival)
	// Delivered tells that a message was handed out; d is valid during the call.
	Delivered(now time.Time, d *queue.Delivery)
	// Settled tells what a consumer decided.
	Settled(now time.Time, v Disposition, s queue.Settled)
	// DeadLettered tells that a message went to the dead letters, for whatever reason.
	DeadLettered(now time.Time, d *queue.DeadLetter)
	// Expired tells that a message outlived its use and is gone. One that becomes
	// a dead letter for it is told of by DeadLettered.
	Expired(now time.Time, e queue.Expired)
}

// IdleObserver is an Observer that also learns of waits that were in vain.
type IdleObserver interface {
	Observer
	// Idle tells that a consumer took back its allowance without having got
	// anything for it.
	Idle(now time.Time)
}

// TransitObserver is an Observer that also learns what becomes of messages on their
// way to a consumer.
type TransitObserver interface {
	Observer
	// Held tells that a message is locked for a consumer that takes for good,
	// until its body was read. Then it is Delivered, Returned, or DeadLettered.
	Held(now time.Time, d *queue.Delivery)
	// Returned tells that a message which was Held or Delivered reached nobody
	// and is back in its place.
	Returned(now time.Time, d *queue.Delivery)
}

// note remembers bytes for an entity besides its definition; the last note
// counts, and comes back in its Definition.
func (s *Shard) note(id ID, note []byte) error {
	e, ok := s.entities[id]
	if !ok {
		return ErrNoEntity
	}
	e.Note = slices.Clone(note)
	e.resize()
	s.recordNote(e)
	return nil
}

func (s *Shard) recordNote(e *entity) {
	s.record(kindNote, e.ID)
	s.eff.Bytes(e.Note)
	s.eff.End()
}

// admission is what an observer has let into its queue.
type admission struct {
	queue *hostedQueue
	as    []queue.Arrival
	evict []queue.SeqNo // what it gives up to make room
}

// ask lets the observer of a queue decide about arrivals.
func (s *Shard) ask(hq *hostedQueue, as []queue.Arrival) error {
	if hq.observer == nil {
		return nil
	}
	evict, err := hq.observer.Admit(s.tx.Now(), hq.q, as)
	if err == nil {
		s.sending.admitted = append(s.sending.admitted, admission{hq, as, evict})
	}
	return err
}

// decline tells observers that nothing comes of what they have let in.
func (s *Shard) decline() {
	for _, a := range s.sending.admitted {
		a.queue.observer.AdmitCanceled(s.tx.Now(), a.as)
	}
}

// evict removes what makes room.
func (s *Shard) evict() {
	for _, a := range s.sending.admitted {
		for _, seq := range a.evict {
			// A message that is gone or was taken meanwhile makes room by itself.
			_ = a.queue.q.Remove(s.tx.Now(), seq, s.out(a.queue))
		}
		if len(a.evict) > 0 {
			s.collectEffects(a.queue)
		}
	}
}
