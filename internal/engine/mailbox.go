// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/notify"
)

// mailbox is how other goroutines reach an engine: commands, and the journal's
// status. It is bounded for what adds work and open for what takes work away.
type mailbox struct {
	limit int
	wake  notify.Signal

	limited atomic.Bool // the status has a lease or an error

	mu     sync.Mutex
	cs     []Command // guarded by mu
	head   int       // guarded by mu; those before it were taken
	spare  []Command // guarded by mu; the slice that was emptied before
	status journal.Status
	closed error // why nothing more is taken; nil while it is
}

func newMailbox(limit int) *mailbox {
	return &mailbox{limit: limit, wake: notify.New()}
}

// tryPush posts a command that adds work. ErrBusy means that it was not taken.
func (m *mailbox) tryPush(c Command) error { return m.post(c, m.limit) }

// push posts a command that is bounded elsewhere, by credit or by a waiting
// caller, and is therefore always taken while the engine runs.
func (m *mailbox) push(c Command) error { return m.post(c, 1<<62) }

func (m *mailbox) post(c Command, limit int) error {
	m.mu.Lock()
	switch {
	case m.closed != nil:
		err := m.closed
		m.mu.Unlock()
		return err
	case len(m.cs)-m.head >= limit:
		m.mu.Unlock()
		return ErrBusy
	}
	m.cs = append(m.cs, c)
	m.mu.Unlock()
	m.wake.Notify()
	return nil
}

// report takes the journal's status.
func (m *mailbox) report(st journal.Status) {
	m.mu.Lock()
	m.status = st
	m.mu.Unlock()
	m.limited.Store(!st.Lease.IsZero() || st.Err != nil)
	m.wake.Notify()
}

const (
	// maxTake is how many commands one step takes: however many wait, what became
	// durable in the meantime is released in between.
	maxTake = 512
	// takeBytes is about how many bytes the commands of one step write, going by those of
	// the step before: a command may be a batch of a hundred messages.
	takeBytes = 2 << 20
	// minTake is how many commands a step takes whatever they write.
	minTake = 8
)

// nextTake returns how many commands the next step takes, after one in which so many have
// written so many bytes.
func nextTake(commands int, bytes uint64) int {
	if commands == 0 || bytes == 0 {
		return maxTake
	}
	return int(max(minTake, min(maxTake, takeBytes*uint64(commands)/bytes)))
}

// take returns the commands that waited longest, at most so many, valid until the next take.
func (m *mailbox) take(most int) ([]Command, journal.Status) {
	m.mu.Lock()
	st := m.status
	if m.head > 0 && m.head >= len(m.cs)/2 { // what was taken before is done
		n := copy(m.cs, m.cs[m.head:])
		clear(m.cs[n:])
		m.cs, m.head = m.cs[:n], 0
	}
	clear(m.cs[:m.head])
	if left := m.cs[m.head:]; len(left) > most {
		m.head += most
		m.mu.Unlock()
		m.wake.Notify()
		return left[:most:most], st
	}
	cs := m.cs[m.head:]
	clear(m.spare)
	m.cs, m.head, m.spare = m.spare[:0], 0, m.cs
	m.mu.Unlock()
	return cs, st
}

// lastStatus returns the journal's status. The commands stay in the mailbox.
func (m *mailbox) lastStatus() journal.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// putBack returns commands that were taken and not applied; they come first again.
func (m *mailbox) putBack(cs []Command) {
	m.mu.Lock()
	m.cs, m.head = append(slices.Clone(cs), m.cs[m.head:]...), 0
	m.mu.Unlock()
}

// close makes every later post fail with err; the first one counts. What was posted
// before can still be taken, and the journal goes on reporting.
func (m *mailbox) close(err error) {
	m.mu.Lock()
	m.closed = cmp.Or(m.closed, err)
	m.mu.Unlock()
}
