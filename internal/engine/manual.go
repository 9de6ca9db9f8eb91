// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/triagemq/triagemq/internal/journal"
)

// Manual is an engine whose owner calls Step, and looks inside: simulators and the tests
// of hosts. It must not be used while Run is running.
type Manual struct{ e *Engine }

// Manual returns the engine for an owner who calls Step.
func (e *Engine) Manual() Manual { return Manual{e} }

// View is the inside of an engine.
type View struct {
	Tail         journal.Position // of the last record appended
	Waiting      int              // groups that wait for the disk
	Delayed      int              // commands that wait until the journal is not busy
	Dropping     int              // drops whose bodies are not all freed
	Live         uint64           // bytes of bodies that are referred to
	Kept         uint64           // bytes in the segments that are kept
	Own          uint64           // bytes of records, those of snapshots not counted
	ForSnapshots uint64           // bytes of those, and of bodies that were moved
	Snapshotting bool             // a snapshot is being written
	Truncating   bool             // or its end is waited for
	Moved        int              // bodies that it has moved
}

// View looks inside.
func (m Manual) View() View {
	e := m.e
	return View{
		Tail:         e.tail,
		Waiting:      len(e.waiting),
		Delayed:      len(e.delayed),
		Dropping:     len(e.dropped),
		Live:         e.live.Live,
		Kept:         e.live.Written,
		Own:          e.written.Own(),
		ForSnapshots: e.written.Snapshots,
		Snapshotting: e.snapshot.active(),
		Truncating:   e.snapshot.busy && !e.snapshot.active(),
		Moved:        len(e.snapshot.moved),
	}
}

// Claim returns what the engine writes with.
func (m Manual) Claim() journal.Claim { return m.e.claim }

// Journal returns the journal, and SetJournal puts another in its place, which should
// stand before it.
func (m Manual) Journal() journal.Journal { return m.e.journal }

// SetJournal is for journals that fail.
func (m Manual) SetJournal(j journal.Journal) { m.e.journal = j }

// SetGo replaces Options.Go.
func (m Manual) SetGo(run func(s journal.Shard, work func())) { m.e.opts.Go = run }

// Report gives the engine a status, as the journal does.
func (m Manual) Report(st journal.Status) { m.e.mail.report(st) }

// Observe takes the last status, which a step does first.
func (m Manual) Observe() { m.e.observe(m.e.mail.lastStatus()) }

// Wake is when there is something to do for a step.
func (m Manual) Wake() <-chan struct{} { return m.e.mail.wake }

// BeginSnapshot begins a snapshot that moves nothing, whether or not it is worth it.
func (m Manual) BeginSnapshot() {
	m.e.beginSnapshot()
	m.e.snapshot.compact, m.e.snapshot.filled = nil, false
}

// Drain is what Run does when its context ends, Stop what it does last.
func (m Manual) Drain(ctx context.Context) error { return m.e.drain(ctx) }

// Stop answers everything that still waits.
func (m Manual) Stop(err error) { m.e.stop(err) }
