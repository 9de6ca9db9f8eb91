// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Observer watches one queue: it may turn arrivals away, and it learns what
// happens to messages. Its methods run on the shard's goroutine, before what they
// tell of is durable.
type Observer interface {
	// Admit decides about arrivals that the queue itself would take. An error
	// turns all of them away; otherwise the messages of evict, which must not
	// be locked, make room for them.
	Admit(now time.Time, q *queue.Queue, as []queue.Arrival) (evict []queue.SeqNo, err error)
	// Arrived tells that messages were stored.
	Arrived(now time.Time, as []queue.Arrival)
	// Delivered tells that a message was handed out; d is lent.
	Delivered(now time.Time, d *queue.Delivery)
	// Settled tells what a consumer decided.
	Settled(now time.Time, v Verdict, s queue.Settled)
	// Died tells that a message went to the dead letters, for whatever reason.
	Died(now time.Time, d *queue.Dead)
}

// IdleObserver is an Observer that also learns of waits that were in vain.
type IdleObserver interface {
	Observer
	// Idle tells that a consumer took back its allowance without having got
	// anything for it.
	Idle(now time.Time)
}

// Observe sets the observer of a part. It is for the owner that has just opened
// the shard, before Run; later there is Tx.Observe.
func (s *Shard) Observe(id ID, part Part, o Observer) error { return (&Tx{s}).Observe(id, part, o) }

// Observe sets the observer of a part; nil removes it.
func (tx *Tx) Observe(id ID, part Part, o Observer) error {
	sl, err := tx.s.slot(id, part)
	if err != nil {
		return err
	}
	sl.observer = o
	return nil
}

// Note remembers bytes for an entity besides its definition; the last note
// counts, and comes back in its Definition.
func (tx *Tx) Note(id ID, note []byte) error {
	e, ok := tx.s.entities[id]
	if !ok {
		return ErrNoEntity
	}
	e.Note = slices.Clone(note)
	tx.s.recordNote(e)
	return nil
}

func (s *Shard) recordNote(e *entity) {
	s.record(kindNote, uint64(e.ID))
	s.recordBytes(e.Note)
	s.recorded()
}

// eviction is what an observer gives up to make room.
type eviction struct {
	slot *slot
	seqs []queue.SeqNo
}

// ask lets the observer of a slot decide about arrivals.
func (s *Shard) ask(sl *slot, as []queue.Arrival) (eviction, error) {
	if sl.observer == nil {
		return eviction{}, nil
	}
	seqs, err := sl.observer.Admit(s.now, sl.q, as)
	return eviction{sl, seqs}, err
}

// evict removes what makes room.
func (s *Shard) evict(e eviction) {
	for _, seq := range e.seqs {
		// A message that is gone or was taken meanwhile makes room by itself.
		_ = e.slot.q.Remove(s.now, seq, &s.eff)
	}
	s.absorb(e.slot)
}
