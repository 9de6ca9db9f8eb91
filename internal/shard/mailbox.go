// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
)

// op is one operation in the mailbox. Exactly one of its methods is called,
// once, on the shard's goroutine.
type op interface {
	run(*Shard)
	fail(error)
}

// mailbox is how other goroutines reach a shard: operations, and the journal's
// status. It is bounded for what adds work and open for what takes work away.
type mailbox struct {
	limit int
	wake  chan struct{} // capacity 1: look again

	leased atomic.Bool // the status has a lease

	mu     sync.Mutex
	ops    []op // guarded by mu
	head   int  // guarded by mu; those before it were taken
	spare  []op // guarded by mu; the slice that was emptied before
	status journal.Status
	closed error // why nothing more is taken; nil while it is
}

func newMailbox(limit int) *mailbox {
	return &mailbox{limit: limit, wake: make(chan struct{}, 1)}
}

// offer posts an operation that adds work. ErrBusy means that it was not taken.
func (m *mailbox) offer(o op) error { return m.post(o, m.limit) }

// push posts an operation that is bounded elsewhere, by credit or by a waiting
// caller, and is therefore always taken while the shard lives.
func (m *mailbox) push(o op) error { return m.post(o, 1<<62) }

func (m *mailbox) post(o op, limit int) error {
	m.mu.Lock()
	switch {
	case m.closed != nil:
		err := m.closed
		m.mu.Unlock()
		return err
	case len(m.ops)-m.head >= limit:
		m.mu.Unlock()
		return ErrBusy
	}
	m.ops = append(m.ops, o)
	m.mu.Unlock()
	m.ring()
	return nil
}

// report takes the journal's status.
func (m *mailbox) report(st journal.Status) {
	m.mu.Lock()
	m.status = st
	m.mu.Unlock()
	m.leased.Store(!st.Lease.IsZero())
	m.ring()
}

func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default: // a look is already due and will see it
	}
}

// most is how many operations one step takes: however many wait, what became
// durable in the meantime is released, and messages are handed out, in between.
const most = 512

// take returns the operations that waited longest, valid until the next take.
func (m *mailbox) take() ([]op, journal.Status) {
	m.mu.Lock()
	st := m.status
	if m.head > 0 && m.head >= len(m.ops)/2 { // what was taken before is done
		n := copy(m.ops, m.ops[m.head:])
		clear(m.ops[n:])
		m.ops, m.head = m.ops[:n], 0
	}
	clear(m.ops[:m.head])
	if left := m.ops[m.head:]; len(left) > most {
		m.head += most
		m.mu.Unlock()
		m.ring()
		return left[:most:most], st
	}
	ops := m.ops[m.head:]
	clear(m.spare)
	m.ops, m.head, m.spare = m.spare[:0], 0, m.ops
	m.mu.Unlock()
	return ops, st
}

// look returns the journal's status and leaves the operations where they are.
func (m *mailbox) look() journal.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// putBack returns operations that were taken and not run; they come first again.
func (m *mailbox) putBack(ops []op) {
	m.mu.Lock()
	m.ops, m.head = append(slices.Clone(ops), m.ops[m.head:]...), 0
	m.mu.Unlock()
}

// close makes every later post fail with err; the first one counts. What was posted
// before can still be taken, and the journal goes on reporting.
func (m *mailbox) close(err error) {
	m.mu.Lock()
	m.closed = cmp.Or(m.closed, err)
	m.mu.Unlock()
}
