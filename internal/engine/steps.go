// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// An operation that is about many items, as a purge, is done in steps: the first
// in its turn among the commands, the others in later steps of the engine, one at a
// time. Between two of them everybody else is served. Each step leaves the machines in
// a state that is whole, and what it wrote is one group of records, so that a crash
// in the middle leaves what was done so far.
//
// Those about different things take turns, however many there are of each: who has one does
// not wait for all of another who has thousands.
//
// No more than aheadBytes of what the steps wrote may wait for the disk. So the record
// of a caller who waits is never behind a whole purge.

// stepwise are the operations under way.
type stepwise struct {
	lines  []*line          // in the order of their turns; none is empty
	about  map[uint64]*line // by what their operations are about
	ahead  int              // bytes that steps wrote since all of it was durable
	behind journal.Position // end of it
	taken  bool             // one was begun in this step of the engine
	closed bool             // the engine is about to stop: no more steps
}

// line are operations about one thing, in the order of their turns.
type line struct {
	about uint64
	ops   []*Steps
}

// add has an operation wait for its next step, behind the others of its line.
func (w *stepwise) add(o *Steps) {
	l := w.about[o.About]
	if l == nil {
		l = &line{about: o.About}
		if w.about == nil {
			w.about = make(map[uint64]*line)
		}
		w.about[o.About] = l
		w.lines = append(w.lines, l)
	}
	l.ops = append(l.ops, o)
}

// next returns the operation whose turn it is. The rest of its line goes behind the other
// lines.
func (w *stepwise) next() *Steps {
	l := w.lines[0]
	w.lines[0] = nil
	w.lines = w.lines[1:]
	o := l.ops[0]
	l.ops[0] = nil
	if l.ops = l.ops[1:]; len(l.ops) == 0 {
		delete(w.about, l.about)
	} else {
		w.lines = append(w.lines, l)
	}
	return o
}

const aheadBytes = 256 << 10

// Steps is a command that is done in steps.
type Steps struct {
	// About is what the operation is about: a number that the host chooses.
	About uint64
	// Step does a bounded part of the work, and is called again, with the commands
	// of others in between, until it is done or returns an error.
	Step func(tx *Tx) (done bool, err error)
	// Done gets the error when everything that the steps did is durable; nil if
	// no caller waits.
	Done func(error)
}

// Apply implements Command: it takes the first step.
func (o *Steps) Apply(tx *Tx) {
	if !o.again(tx) {
		tx.e.stepwise.add(o)
		tx.e.stepwise.taken = true
	}
}

// Fail implements Command.
func (o *Steps) Fail(err error) {
	if o.Done != nil {
		o.Done(err)
	}
}

// Refusable implements Refusable: a caller waits, or the steps must be done.
func (o *Steps) Refusable() bool { return o.Done != nil }

// again takes a step and reports whether it was the last.
func (o *Steps) again(tx *Tx) (over bool) {
	e := tx.e
	before := e.eff.Size()
	done, err := o.Step(tx)
	if over = done || err != nil; over && o.Done != nil {
		tx.Reply(ReplyFunc(o.Done), err)
	}
	if n := e.eff.Size(); !over && n > before {
		e.commit()
		e.stepwise.ahead += n
		e.stepwise.behind = e.tail
	}
	return over
}

// due reports whether a step may be taken.
func (w *stepwise) due(durable journal.Position) bool {
	if w.behind <= durable {
		w.ahead = 0
	}
	return len(w.lines) > 0 && w.ahead < aheadBytes && !w.closed
}

// nextStep takes one step of one of the operations that are done in steps.
func (e *Engine) nextStep() {
	w := &e.stepwise
	if !w.due(e.durable) || w.taken {
		w.taken = false
		return
	}
	if o := w.next(); !o.again(&e.tx) {
		w.add(o)
	}
}

// refuse ends the operations that a caller waits for.
func (w *stepwise) refuse(err error) {
	lines := w.lines
	w.lines, w.about = nil, nil
	for _, l := range lines {
		for _, o := range l.ops {
			if o.Refusable() {
				o.Fail(err)
			} else {
				w.add(o)
			}
		}
	}
}

// stop tells those who wait that there are no more steps.
func (w *stepwise) stop(err error) {
	for _, l := range w.lines {
		for _, o := range l.ops {
			o.Fail(err)
		}
	}
	w.lines, w.about = nil, nil
}

// dropped are units that were dropped, and whose bodies are not all freed yet.
type dropped struct {
	units []*Unit        // the first of them is being walked
	at    machine.Cursor // in it
}

// drop forgets units and frees the bodies that they refer to. The record that they were
// dropped says all, so that a crash before the end is no loss.
func (e *Engine) drop(us []*Unit) {
	e.forget(us)
	d := &dropped{units: us}
	e.dropped = append(e.dropped, d)
	e.tx.Start(&Steps{Step: func(*Tx) (bool, error) {
		if !d.free(e.opts.VisitStep, e.live.Free) {
			return false, nil
		}
		e.dropped = slices.DeleteFunc(e.dropped, func(o *dropped) bool { return o == d })
		return true, nil
	}})
}

// free calls fn for up to about so many of the bodies that are left, and reports whether
// there are no more.
func (d *dropped) free(items int, fn func(machine.Ref)) bool {
	for ; len(d.units) > 0; d.units, d.at = d.units[1:], 0 {
		var done bool
		if d.at, done = d.units[0].Machine.Refs(d.at, &machine.Budget{Items: items}, fn); !done {
			return false
		}
	}
	return true
}
