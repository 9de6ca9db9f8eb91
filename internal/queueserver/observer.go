// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Observer watches one queue: it may reject arrivals, and it learns what happens to
// messages. Its methods run on the shard's goroutine, before what they report is
// durable.
type Observer interface {
	// Admit decides about arrivals that the queue itself would store; there may
	// be none, if all are duplicates. An error rejects all of them. Otherwise the
	// messages of evict, which must not be locked, are removed.
	Admit(now time.Time, q *queue.Queue, as []queue.Arrival) (evict []queue.SeqNo, err error)
	// AdmitCanceled says that arrivals which Admit has just admitted are not stored and
	// evict nothing, because another queue or the disk is full.
	AdmitCanceled(now time.Time, as []queue.Arrival)
	// Arrived says that messages were stored, the same that Admit admitted.
	Arrived(now time.Time, as []queue.Arrival)
	// Delivered says that a message was delivered; d is valid during the call.
	Delivered(now time.Time, d *queue.Delivery)
	// Settled says what a consumer decided.
	Settled(now time.Time, v Disposition, s queue.Settled)
	// DeadLettered says that a message became a dead letter, for any reason.
	DeadLettered(now time.Time, d *queue.DeadLetter)
	// Expired says that a message has expired and was removed. For one that becomes a
	// dead letter instead, DeadLettered is called.
	Expired(now time.Time, e queue.Expired)
}

// IdleObserver is an Observer that also learns of waits without a message.
type IdleObserver interface {
	Observer
	// Idle says that a consumer was drained without having got a message since its
	// last drain.
	Idle(now time.Time)
}

// TransitObserver is an Observer that also learns what becomes of messages on their
// way to a consumer.
type TransitObserver interface {
	Observer
	// Held says that a message is locked for a ReceiveAndDelete consumer until its
	// body was read. Then it is Delivered, Returned, or DeadLettered.
	Held(now time.Time, d *queue.Delivery)
	// Returned says that no receiver has got a message which was Held or Delivered,
	// and that it is ready again.
	Returned(now time.Time, d *queue.Delivery)
}

// SessionObserver is an Observer that also learns of sessions when they are granted.
type SessionObserver interface {
	Observer
	// SessionGranted says that a consumer has been granted a session. The consumer itself
	// learns of it when everything before is durable.
	SessionGranted(now time.Time, id ConsumerID, lock queue.SessionLock, until time.Time)
}

// note stores bytes for an entity besides its definition; the last note
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

// admission is what an observer has admitted to its queue.
type admission struct {
	queue *hostedQueue
	as    []queue.Arrival
	evict []queue.SeqNo // what is removed for it
}

// ask has the observer of a queue decide about arrivals.
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

// decline tells observers that what they have admitted is not stored.
func (s *Shard) decline() {
	for _, a := range s.sending.admitted {
		a.queue.observer.AdmitCanceled(s.tx.Now(), a.as)
	}
}

// evict removes the messages that observers chose.
func (s *Shard) evict() {
	for _, a := range s.sending.admitted {
		for _, seq := range a.evict {
			// A message that was removed or taken meanwhile needs no removal.
			_ = a.queue.q.Remove(s.tx.Now(), seq, s.out(a.queue))
		}
		if len(a.evict) > 0 {
			s.collectEffects(a.queue)
		}
	}
}
