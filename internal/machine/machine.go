// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// Ref is where the body of a record is in the journal, and how many bytes it has. The
// zero value is none.
type Ref struct {
	At   uint64
	Size uint32
}

// Budget bounds one step of work: items to visit, whether or not anything is
// written about them, and bytes to write. The code that does the work counts it down;
// the last item may take it below zero.
type Budget struct{ Items, Bytes int }

// Left reports whether there is anything left of it.
func (b *Budget) Left() bool { return b.Items > 0 && b.Bytes > 0 }

// Cursor is how far a walk in steps has come. The zero value is the beginning; every
// other value is the machine's own.
type Cursor uint64

// Machine is what the engine needs of a state machine. Its methods are called on the
// engine's goroutine.
type Machine interface {
	// Replay applies a record that the machine wrote in an earlier life, without the
	// prefix that the engine had put before it. It adds no records to out. After an
	// error the machine must be dropped.
	Replay(rec []byte, out *Effects) error
	// Restored reports whether what was replayed so far makes a state: false within
	// a snapshot that has not ended.
	Restored() bool
	// Snapshot begins a snapshot. Commands may run between its steps.
	Snapshot() Snapshot
	// SnapshotSize is about how many bytes a snapshot takes, rather more than less.
	// It visits a constant number of items.
	SnapshotSize() uint64
	// Settling is what it takes at most to let go of everything that the machine holds,
	// if nothing is let go of together: so many records of a kind and a number, and so many
	// bytes beside them. It visits a constant number of items.
	Settling() (records, bytes uint64)
	// NextDeadline returns when the machine has something to do by itself, if ever.
	// It may be early, never late, and visits a constant number of items.
	NextDeadline() (time.Time, bool)
	// Latest returns the latest time at which anything was stored; zero if there is
	// none. Time goes on from there after a restart.
	Latest() time.Time
	// Refs calls fn for the bodies that the machine refers to, from a cursor on, as
	// far as b.Items allows. No command may run before the walk is done.
	Refs(from Cursor, b *Budget, fn func(Ref)) (next Cursor, done bool)
	// Check compares everything the machine counts with what it holds.
	Check() error
}

// Tolerant is a machine that can be replayed without some of its records, if it is told
// that they are missing. It then leaves out what a record says about something it does
// not know.
type Tolerant interface {
	// Tolerate says that the records which follow may speak of ones that are missing.
	Tolerate()
	// Lost is Tolerate, and says that records may be missing here.
	Lost()
	// EndReplay says that there are no more records, also if a snapshot has not ended.
	EndReplay()
	// Missing returns about how many items are missing, as far as it is known.
	Missing() int
}

// Snapshot writes the state of a machine in steps.
type Snapshot interface {
	// Upcoming calls fn for the bodies that the next Step, with the same budget, will
	// ask to be moved. What commands change in between it cannot know.
	Upcoming(b Budget, fn func(Ref))
	// Step writes the next records: as much as the budget allows, but at least one
	// item. move may give a body a new place, and is nil if none moves.
	Step(b *Budget, move func(Ref) (Ref, bool), out *Effects) (done bool)
}

// AllRefs calls fn for every body that a machine refers to. It visits everything: for
// checks, and after a replay.
func AllRefs(m Machine, fn func(Ref)) {
	var at Cursor
	for done := false; !done; {
		at, done = m.Refs(at, &Budget{Items: 1 << 20, Bytes: 1 << 62}, fn)
	}
}
