// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// fifo is the only list of messages. Its lock also guards the output buffers of
// the connections.
type fifo struct {
	mu       sync.Mutex
	messages [][]byte // from head on
	head     int
	takers   []*taker
	turn     int // of the taker that is next

	log     *wal.WAL // nil without a journal
	claim   journal.Claim
	waiting []arrivals         // appended, not yet durable
	at      []journal.Position // buffer for Append
	safe    journal.Position   // durable
	kept    journal.Position   // the journal was truncated to here
}

// taker is a link on which a peer receives. Peers of a benchmark have one in a
// session, so that it numbers its deliveries by itself.
type taker struct {
	c             *conn
	channel       uint16
	handle        uint32
	count, credit uint32
}

// arrivals is what one read of a connection brought.
type arrivals struct {
	from        *conn
	channel     uint16
	first, last uint32 // delivery ids
	bodies      [][]byte
	at          journal.Position
}

// openJournal makes f append to a journal in dir, and returns what runs it.
func (f *fifo) openJournal(dir string) (run func(context.Context) error, err error) {
	if f.log, err = wal.Open(vfs.OS(dir), wal.Options{}); err != nil {
		return nil, err
	}
	claim, history, err := journal.ClaimOne(context.Background(), f.log, 1)
	if err != nil {
		return nil, err
	}
	for _, err := range history {
		if err != nil {
			return nil, err
		}
	}
	f.claim = claim
	f.log.Watch(claim, f.durable)
	return func(ctx context.Context) error { return errors.Join(f.log.Run(ctx), f.log.Close()) }, nil
}

// put takes what one read brought.
func (f *fifo) put(a arrivals) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log == nil {
		f.release(&a)
		f.hand()
		return nil
	}
	if f.kept == 0 {
		f.kept = f.safe
	}
	if f.claim.Segment(f.safe) != f.claim.Segment(f.kept) { // a broker frees its journal as well
		f.kept = f.safe
		if err := f.log.Truncate(context.Background(), f.claim, journal.Retain{From: f.safe}); err != nil {
			return err
		}
	}
	f.at = slices.Grow(f.at[:0], len(a.bodies))[:len(a.bodies)]
	if err := f.log.Append(f.claim, &journal.Group{Records: a.bodies, At: f.at}); err != nil {
		return err
	}
	a.at = f.at[len(f.at)-1]
	f.waiting = append(f.waiting, a)
	return nil
}

// durable releases what the disk has; the journal calls it.
func (f *fifo) durable(st journal.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.safe = st.Durable
	n := 0
	for n < len(f.waiting) && f.waiting[n].at <= st.Durable {
		f.release(&f.waiting[n])
		n++
	}
	f.waiting = slices.Delete(f.waiting, 0, n)
	f.hand()
}

// release accepts messages and makes them available; mu is held.
func (f *fifo) release(a *arrivals) {
	a.from.accept(a.channel, a.first, a.last)
	f.messages = append(f.messages, a.bodies...)
}

// hand delivers messages to receivers with credit, round robin; mu is held.
func (f *fifo) hand() {
	for refused := 0; f.head < len(f.messages) && refused < len(f.takers); f.turn++ {
		t := f.takers[f.turn%len(f.takers)]
		if t.credit == 0 {
			refused++
			continue
		}
		refused = 0
		t.c.deliver(t, f.messages[f.head])
		f.messages[f.head] = nil
		f.head++
	}
	if f.head == len(f.messages) {
		f.messages, f.head = f.messages[:0], 0
	}
}

// attach adds a taker, which has no credit yet.
func (f *fifo) attach(t *taker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takers = append(f.takers, t)
}

// grant sets a taker's credit, counted from the deliveries that the peer has seen.
func (f *fifo) grant(t *taker, seen, credit uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.credit = seen + credit - t.count
	f.hand()
}

// leave takes a connection's takers away.
func (f *fifo) leave(c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.takers = slices.DeleteFunc(f.takers, func(t *taker) bool { return t.c == c })
}
