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
	// Delivered tells that a message was handed out.
	Delivered(now time.Time, d *queue.Delivery)
	// Settled tells what a consumer decided.
	Settled(now time.Time, v Verdict, s queue.Settled)
	// Died tells that a message went to the dead letters, for whatever reason.
	Died(now time.Time, d *queue.Dead)
}

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

// ask lets the observer of a slot decide about arrivals.
func (s *Shard) ask(sl *slot, as []queue.Arrival) error {
	if sl.observer == nil {
		return nil
	}
	evict, err := sl.observer.Admit(s.now, sl.q, as)
	if err != nil {
		return err
	}
	for _, seq := range evict {
		// A message that is gone or was taken meanwhile makes room by itself.
		_ = sl.q.Remove(s.now, seq, &s.eff)
	}
	if len(evict) > 0 {
		s.absorb(sl)
	}
	return nil
}
