// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
)

// NewMonitor makes the monitor of an entity from the meta bytes of its definition and
// from its last note, which is nil for an entity that is new. It may return nil. It is
// called from any goroutine.
type NewMonitor func(name string, meta, note []byte) (Monitor, error)

// Monitor is the Observer of a main queue that the shard makes itself, from the
// definition of the entity, with Options.NewMonitor. It runs where the messages are,
// so that the caller that asks for measurements may be in another process.
type Monitor interface {
	IdleObserver
	// Count counts operations that do not show in what happens to messages.
	Count(now time.Time, o objective.Operation, n int)
	// Revision is that of the policy by which it admits messages.
	Revision() int64
	// Replace takes over the settings of another monitor, that of a changed
	// definition. What was measured stays.
	Replace(next Monitor)
	// Due reports whether Measure has something to do; OnDue has fn called, on the
	// shard's goroutine, when that becomes so.
	Due() bool
	OnDue(fn func())
	// Measure brings everything up to now and returns the states that have changed.
	Measure(now time.Time, q *queue.Queue) []objective.Change
	// Note returns what to store, if there is something new and the last note is
	// older than after.
	Note(now time.Time, after time.Duration) (note []byte, ok bool)
	// Report returns what was measured, as of the last Measure.
	Report(now time.Time, q *queue.Queue) MonitorReport
	// Memory is how many bytes it takes for the fair keys whose rate was used lately.
	Memory() int64
	// Rate is how many messages were completed in a second lately.
	Rate(now time.Time) float64
}

// MonitorReport is what a monitor measured, and by which policy.
type MonitorReport struct {
	Discipline string
	Revision   int64
	// Saturated says whether classes share the deliveries for the time being. It is
	// nil if the policy has no such mode.
	Saturated *bool
	objective.Report
}

// monitor makes the monitor of an entity, nil if there is to be none.
func (s *Shard) monitor(name string, meta, note []byte) (Monitor, error) {
	if s.opts.NewMonitor == nil {
		return nil, nil
	}
	m, err := s.opts.NewMonitor(name, meta, note)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDefinition, err)
	}
	return m, nil
}

// errDefinition says that a definition cannot be read.
var errDefinition = errors.New("queueserver: invalid definition")

// monitorAll makes the monitors of the entities that were recovered.
func (s *Shard) monitorAll() error {
	for _, e := range s.sorted() {
		note := e.Note
		if note == nil {
			note = []byte{} // it is not new
		}
		m, err := s.monitor(e.Name, e.Meta, note)
		if err != nil {
			return fmt.Errorf("monitor of %q: %w", e.Name, err)
		}
		e.parts[Main].setMonitor(m)
	}
	return nil
}

// setMonitor gives a queue its monitor, or the one it has other settings.
func (hq *hostedQueue) setMonitor(m Monitor) {
	switch {
	case m == nil:
	case hq.monitor != nil:
		hq.monitor.Replace(m)
	default:
		hq.monitor, hq.observer = m, m
		m.OnDue(hq.measureLater)
	}
}

// measured are the monitored queues of a shard.
type measured struct {
	due []*hostedQueue // those that Measure looks at
}

// measureLater puts a queue among those that Measure looks at.
func (hq *hostedQueue) measureLater() {
	if !hq.toMeasure {
		hq.toMeasure = true
		hq.shard.measured.due = append(hq.shard.measured.due, hq)
	}
}

// count reports operations to the monitor of a queue, if it has one.
func (hq *hostedQueue) count(now time.Time, o objective.Operation, n int) {
	if hq.monitor != nil {
		hq.monitor.Count(now, o, n)
	}
}

// measureAtOnce is how many queues one step measures.
const measureAtOnce = 64

// Measure measures the queues in which something happened, or with which time alone
// has something to do, and replies with the states that have changed. Notes that are
// older than NoteAfter are written anew.
type Measure struct{ NoteAfter time.Duration }

// Measured is what has changed in one queue.
type Measured struct {
	ID      ID
	Changes []objective.Change
}

func (o Measure) begin(_ *Shard, r *[]Measured) work {
	left := -1 // not begun
	return func(s *Shard) (bool, error) {
		if left < 0 {
			left = len(s.measured.due)
		}
		left = min(left, len(s.measured.due)) // another one may have measured some
		visits := s.opts.VisitStep
		for range min(left, measureAtOnce) {
			hq := s.measured.due[0]
			if !hq.dropped() && !hq.q.SeekOldest(&visits) {
				return false, nil
			}
			s.measured.due[0] = nil // what is deleted must leave memory
			s.measured.due = s.measured.due[1:]
			left--
			hq.toMeasure = false
			if !hq.dropped() {
				o.measure(s, hq, r)
			}
		}
		return left == 0, nil
	}
}

func (o Measure) measure(s *Shard, hq *hostedQueue, r *[]Measured) {
	m := hq.monitor
	if changes := m.Measure(s.tx.Now(), hq.q); len(changes) > 0 {
		*r = append(*r, Measured{hq.entity.ID, changes})
	}
	if note, ok := m.Note(s.tx.Now(), o.NoteAfter); ok && s.tx.HasSpace(len(note)) { // else the next one says it
		_ = s.note(hq.entity.ID, note) // the entity exists
	}
	if m.Due() {
		hq.measureLater()
	}
}

// Report replies with what was measured of entities. Those that do not exist, or have
// no monitor, are left out.
type Report struct{ IDs []ID }

// Reported is what was measured of one of them.
type Reported struct {
	ID        ID
	Locked    int64
	Consumers int // clients that receive
	Changes   []objective.Change
	MonitorReport
}

func (o Report) begin(_ *Shard, r *[]Reported) work {
	ids := o.IDs
	return func(s *Shard) (bool, error) {
		visits := s.opts.VisitStep
		for n := 0; len(ids) > 0 && n < measureAtOnce; ids, n = ids[1:], n+1 {
			hq, err := s.hostedQueue(ids[0], Main)
			if err != nil || hq.monitor == nil {
				continue
			}
			if !hq.q.SeekOldest(&visits) {
				return false, nil
			}
			x := Reported{ID: ids[0], Locked: hq.q.Counts().Locked, Consumers: hq.receivers(), Changes: hq.monitor.Measure(s.tx.Now(), hq.q)}
			if hq.monitor.Due() {
				hq.measureLater()
			}
			x.MonitorReport = hq.monitor.Report(s.tx.Now(), hq.q)
			*r = append(*r, x)
		}
		return len(ids) == 0, nil
	}
}
