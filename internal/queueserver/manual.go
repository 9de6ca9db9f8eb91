// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Manual is a shard whose owner calls Step: the simulator, and tests. It reaches the
// machines directly, which nobody may do while Run is running.
type Manual struct{ s *Shard }

// Manual returns the shard for an owner that calls Step.
func (s *Shard) Manual() Manual { return Manual{s} }

// Inject has fn run in its turn among the operations; done, which may be nil, gets its
// error when everything fn did is durable.
func (m Manual) Inject(fn func() error, done func(error)) error {
	return m.s.push(&task{do: func(*Shard) error { return fn() }, done: done})
}

// InjectInSteps is Inject for an operation that is done in steps.
func (m Manual) InjectInSteps(step func() (done bool, err error), done func(error)) error {
	return m.s.SubmitReserved(m.s.inSteps(0, func(*Shard) (bool, error) { return step() }, done))
}

// Now is the time of the step.
func (m Manual) Now() time.Time { return m.s.tx.Now() }

// Visits is how many messages a step of an operation should visit.
func (m Manual) Visits() int { return m.s.opts.VisitStep }

// Queue returns a queue to look at.
func (m Manual) Queue(id QueueID) (*queue.Queue, error) { return m.s.inspect(id) }

// Apply has fn change a queue; what it does joins the group of the step, also if fn
// returns an error.
func (m Manual) Apply(id QueueID, fn func(q *queue.Queue, out *queue.Effects) error) error {
	return m.s.change(id, func(q *queue.Queue, out *queue.Effects) error {
		err := fn(q, out)
		hq, _ := m.s.hostedQueue(id.Entity, id.SubQueue)
		hq.levelsChanged()
		return err
	})
}

// Delivery returns a message that was taken or peeked, with the way to its body.
func (m Manual) Delivery(id QueueID, qd queue.Delivery) (Delivery, error) {
	hq, err := m.s.hostedQueue(id.Entity, id.SubQueue)
	if err != nil {
		return Delivery{}, err
	}
	return m.s.delivery(hq, qd), nil
}

// Store appends a body that Apply is about to refer to.
func (m Manual) Store(raw []byte) (queue.Ref, error) { return m.s.tx.StoreOne(raw) }

// Note stores bytes for an entity besides its definition; the last note counts,
// and comes back in its Definition.
func (m Manual) Note(id ID, note []byte) error { return m.s.note(id, note) }

// Observe sets the observer of a queue; nil removes it.
func (m Manual) Observe(id QueueID, o Observer) error {
	hq, err := m.s.hostedQueue(id.Entity, id.SubQueue)
	if err != nil {
		return err
	}
	hq.observer = o
	return nil
}
