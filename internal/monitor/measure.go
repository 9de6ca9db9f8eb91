// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Measure implements queueserver.Monitor.
func (m *monitor) Measure(now time.Time, q *queue.Queue) []objective.Change {
	m.changed = m.unnoted // measure again until the measurements are stored
	m.observe(q)
	changes := append(m.meter.Tick(now), m.saturation(now, q)...)
	dependent := false
	for _, c := range m.policy.Classes {
		dependent = dependent || c.Objective.Wait > 0 || c.ExpectedRate != (policy.Rate{})
	}
	dependent = (dependent || m.policy.Saturation.Oldest > 0) && q.Counts().Ready > 0
	for _, state := range m.meter.States {
		dependent = dependent || state != objective.Met
	}
	m.timeDependent = dependent
	return changes
}

// saturation returns a change when a queue becomes saturated, and when that ends.
func (m *monitor) saturation(now time.Time, q *queue.Queue) []objective.Change {
	saturated := q.Saturated(now)
	if saturated == m.saturated {
		return nil
	}
	m.saturated = saturated
	c := objective.Change{At: now, Subject: objective.OfSaturation, From: objective.Met, To: objective.AtRisk}
	c.Why = fmt.Sprintf("%d messages wait; classes share the deliveries by weight", q.Counts().Ready)
	if !saturated {
		c.From, c.To = c.To, c.From
		c.Why = fmt.Sprintf("%d messages wait; the highest level goes first again", q.Counts().Ready)
	}
	return []objective.Change{c}
}

// observe reports the ready messages to the meter.
func (m *monitor) observe(q *queue.Queue) {
	for c := range len(m.policy.Classes) + 1 {
		if n, _ := q.ReadyOf(queue.Class(c)); n == 0 {
			m.meter.Observe(uint8(c), objective.Backlog{})
		}
	}
	for c, st := range q.Classes() {
		m.meter.Observe(uint8(c), objective.Backlog{Waiting: st.Ready, Oldest: st.Oldest})
	}
}

// Note implements queueserver.Monitor.
func (m *monitor) Note(now time.Time, after time.Duration) ([]byte, bool) {
	if !m.unnoted || now.Sub(m.noted) < after {
		return nil, false
	}
	m.unnoted, m.noted, m.changed = false, now, false
	return m.meter.Snapshot(), true
}

// Rate implements queueserver.Monitor.
func (m *monitor) Rate(now time.Time) float64 { return m.done.Estimate(now) }

// Report implements queueserver.Monitor.
func (m *monitor) Report(now time.Time, q *queue.Queue) queueserver.MonitorReport {
	r := queueserver.MonitorReport{Discipline: m.policy.Discipline.String(), Revision: m.policy.Revision, Report: m.meter.Report(now)}
	if q.Config().Order.Saturation != (queue.Saturation{}) {
		saturated := m.saturated
		r.Saturated = &saturated
	}
	return r
}
