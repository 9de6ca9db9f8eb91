// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// An operation that is about many messages, as a purge, is done in steps: the first
// in its turn among the operations, the others in later steps of the shard, one at a
// time. Between two of them everybody else is served. Each step leaves the queues in
// a state that is whole, and what it wrote is one group of records, so that a crash
// in the middle leaves what was done so far.
//
// No more than aheadBytes of what the steps wrote may wait for the disk. So the record
// of a sender never waits there behind a whole purge.

// stepwise are the operations under way.
type stepwise struct {
	ops    []*inSteps       // in the order of their turns
	ahead  int              // bytes that steps wrote since all of it was durable
	behind journal.Position // end of it
	taken  bool             // one was begun in this step of the shard
	closed bool             // the shard is about to stop: no more steps
}

const aheadBytes = 256 << 10

// inSteps is one of them.
type inSteps struct {
	step func(*Shard) (done bool, err error)
	done func(error) // nil: nobody waits
}

// run implements op: it takes the first step.
func (o *inSteps) run(s *Shard) {
	if !o.again(s) {
		s.stepwise.ops = append(s.stepwise.ops, o)
		s.stepwise.taken = true
	}
}

func (o *inSteps) fail(err error) {
	if o.done != nil {
		o.done(err)
	}
}

// again takes a step and reports whether it was the last.
func (o *inSteps) again(s *Shard) (over bool) {
	before := s.eff.Count()
	done, err := o.step(s)
	if over = done || err != nil; over && o.done != nil {
		s.then(answerFunc(o.done), err)
	}
	if n := s.eff.Size(); !over && s.eff.Count() > before {
		s.commit()
		s.stepwise.ahead += n
		s.stepwise.behind = s.tail
	}
	return over
}

// due reports whether a step may be taken.
func (w *stepwise) due(durable journal.Position) bool {
	if w.behind <= durable {
		w.ahead = 0
	}
	return len(w.ops) > 0 && w.ahead < aheadBytes && !w.closed
}

// goOn takes one step of one of the operations that are done in steps.
func (s *Shard) goOn() {
	w := &s.stepwise
	if !w.due(s.durable) || w.taken {
		w.taken = false
		return
	}
	o := w.ops[0]
	n := copy(w.ops, w.ops[1:])
	w.ops[n] = nil
	w.ops = w.ops[:n]
	if !o.again(s) {
		w.ops = append(w.ops, o) // behind the others
	}
}

// stop tells those who wait that there are no more steps.
func (w *stepwise) stop(err error) {
	for _, o := range w.ops {
		o.fail(err)
	}
	w.ops = nil
}

// reorder has the messages of a queue put into the order that was configured.
func (s *Shard) reorder(sl *slot) {
	if sl.reordering {
		return // it goes on with the new one
	}
	sl.reordering = true
	(&inSteps{step: func(s *Shard) (bool, error) {
		if s.entities[sl.entity.ID] != sl.entity {
			return true, nil // dropped meanwhile
		}
		sl.reordering = sl.q.Reorder(s.opts.VisitStep)
		s.touch(sl) // another message may be first now
		return !sl.reordering, nil
	}}).run(s)
}

// dropped is an entity that was dropped, and whose bodies are not all freed yet.
type dropped struct {
	e    *entity
	part int            // queue whose bodies are freed next
	at   machine.Cursor // in that queue
}

// freeBodies frees the bodies that the queues of a dropped entity refer to. The record
// that it was dropped says all, so that a crash before the end is no loss.
func (s *Shard) freeBodies(e *entity) {
	d := &dropped{e: e}
	s.dropped = append(s.dropped, d)
	(&inSteps{step: func(s *Shard) (bool, error) {
		if !d.free(s.opts.VisitStep, s.live.free) {
			return false, nil
		}
		s.dropped = slices.DeleteFunc(s.dropped, func(o *dropped) bool { return o == d })
		return true, nil
	}}).run(s)
}

// free calls fn for up to about most of the bodies that are left, and reports whether
// there are no more.
func (d *dropped) free(most int, fn func(queue.Ref)) bool {
	for ; d.part < len(d.e.parts); d.part, d.at = d.part+1, 0 {
		var done bool
		budget := machine.Budget{Items: most}
		if d.at, done = d.e.parts[d.part].q.Refs(d.at, &budget, fn); !done {
			return false
		}
	}
	return true
}
