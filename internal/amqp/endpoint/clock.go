// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// minHeartbeat is how often we send heartbeats at most, however impatient a peer
// claims to be.
const minHeartbeat = 250 * time.Millisecond

// keepOutput is how long large buffers for output are kept that nothing is written with:
// others may need the memory.
const keepOutput = time.Second

// NextDeadline reports when Tick next has work, if ever.
func (m *Machine) NextDeadline() (time.Time, bool) {
	switch m.phase {
	case done:
		return time.Time{}, false
	case running:
		idle, next := m.idleAt(), m.spoke.Add(m.heartbeat)
		if m.out.bulky() && keepOutput < m.heartbeat {
			next = m.spoke.Add(keepOutput)
		}
		if idle.Before(next) && !m.paused {
			return idle, true
		}
		return next, true
	default:
		return m.started.Add(m.cfg.HandshakeTimeout), true
	}
}

// idleAt is when the peer has been silent for twice what we advertised
// [AMQP 2.4.5].
func (m *Machine) idleAt() time.Time { return m.heard.Add(2 * m.cfg.IdleTimeout) }

// Tick drops a peer that is late and sends a heartbeat when one is due.
func (m *Machine) Tick(now time.Time) error {
	m.now = now
	if m.phase == running && m.out.bulky() && m.out.len() == 0 && !now.Before(m.spoke.Add(keepOutput)) {
		m.out.bytes, m.out.spare = nil, nil
		m.measure()
	}
	switch {
	case m.phase == done:
	case m.phase != running:
		if !now.Before(m.started.Add(m.cfg.HandshakeTimeout)) {
			m.finish(errHandshake)
		}
	case !now.Before(m.idleAt()) && !m.paused: // while it is paused, nobody listens to it
		m.send(0, &frame.Close{Error: Errorf(CondResourceLimitExceeded, "idle timeout expired")})
		m.finish(errIdle)
	case !now.Before(m.spoke.Add(m.heartbeat)):
		m.heartBeat()
	}
	return m.err
}

func (m *Machine) heartBeat() {
	if m.out.len() == 0 {
		start := len(m.out.bytes)
		m.out.bytes = frame.AppendHeader(m.out.bytes, frame.TypeAMQP, 0)
		frame.SetSize(m.out.bytes, start)
	}
	m.spoke = m.now
	// A good moment to give back what a burst of input has left behind.
	if len(m.in) == 0 {
		m.in = nil
	}
	m.out.spare = nil
}
