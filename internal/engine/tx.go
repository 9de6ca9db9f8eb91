// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Tx is what commands and hosts may do with their engine. It is for the engine's
// goroutine only: for use during calls of Host and Command.
type Tx struct{ e *Engine }

// Now is the time of the step. It never goes back.
func (tx *Tx) Now() time.Time { return tx.e.now }

// Epoch counts the lives of the engine.
func (tx *Tx) Epoch() uint32 { return tx.e.claim.Epoch }

// Add begins to drive a machine.
func (tx *Tx) Add(u *Unit) { tx.e.add(u) }

// Drop ceases to drive machines. The bodies that they refer to are freed in steps. The
// host has written that they are removed.
func (tx *Tx) Drop(us []*Unit) { tx.e.drop(us) }

// WriteAs makes the records that are written from now on those of a machine.
func (tx *Tx) WriteAs(u *Unit) { tx.e.eff.SetPrefix(u.prefix) }

// Collect counts the bodies that a machine has added and freed, and returns those it has
// freed, valid until the next command. It is called after each command of a machine.
func (tx *Tx) Collect(u *Unit) (freed []machine.Ref) {
	tx.e.resize(u)
	return tx.e.account()
}

// Resize says that the size of a machine in a snapshot may have changed.
func (tx *Tx) Resize(u *Unit) { tx.e.resize(u) }

// Schedule notes when a machine has something to do by itself. It is called when that may
// have changed.
func (tx *Tx) Schedule(u *Unit) {
	if !u.dropped {
		tx.e.deadlines.set(u)
	}
}

// Reply answers to when everything written so far is durable.
func (tx *Tx) Reply(to Replier, err error) {
	tx.e.group.replies = append(tx.e.group.replies, reply{to, err})
}

// MustCommit has the open group committed at the end of the step. Without it, and
// without a Reply, it may wait a few milliseconds for others.
func (tx *Tx) MustCommit() { tx.e.group.awaited = true }

// CommitIfFull commits the open group if it is large enough. It is called between
// parts of a command that need not be one group.
func (tx *Tx) CommitIfFull() { tx.e.commitIfFull() }

// Reserve makes sure that about so many bytes of records fit into the open group. It is
// called before the first change of a command that must be one group: ErrTooLarge says
// that it can never be one, ErrDiskFull that there is no space. If the command goes on to
// store ordinary bodies, they are refused unless its needs are met, too.
func (tx *Tx) Reserve(n Needs) error {
	tx.e.needs = n
	return tx.Fits(n.Records)
}

// Fits is Reserve for a command that adds nothing that must be let go of one day.
func (tx *Tx) Fits(bytes int) error {
	e := tx.e
	if bytes > e.claim.MaxGroup/4*3 {
		return ErrTooLarge
	}
	if bytes > e.groupLimit && e.eff.Size() > 0 {
		e.commit() // it may have the next group to itself
		if e.stuck {
			return ErrDiskFull
		}
	}
	return e.failed
}

// MaxRecord is how large a record can be that fits into any group.
func (tx *Tx) MaxRecord() int { return tx.e.claim.MaxGroup / 2 }

// Store appends bodies and returns where each one is, in refs. Nothing refers to them
// yet: a crash before the record that does leaves garbage. ErrTooLarge and ErrDiskFull
// refuse them, and journal.ErrBusy for the moment; any other error is the engine's end.
func (tx *Tx) Store(use journal.Use, raws [][]byte, refs []machine.Ref) error {
	return tx.e.store(use, raws, refs)
}

// StoreOne is Store of one essential body.
func (tx *Tx) StoreOne(raw []byte) (machine.Ref, error) { return tx.e.storeOne(raw) }

// SameSegment reports whether two bodies are in one segment of the journal.
func (tx *Tx) SameSegment(a, b machine.Ref) bool {
	return tx.e.live.SegmentOf(a) == tx.e.live.SegmentOf(b)
}

// Retained reports whether a body without a reference is still where it was: its segment
// was not given up.
func (tx *Tx) Retained(ref machine.Ref) bool { return tx.e.live.Retains(ref) }

// Durable returns the position up to which everything is durable.
func (tx *Tx) Durable() journal.Position { return tx.e.durable }

// Full reports whether only reserved space was left on the disk, as of the last status.
func (tx *Tx) Full() bool { return tx.e.full }

// Spare returns how many bytes groups can have on a full disk beyond what is reserved for
// snapshots.
func (tx *Tx) Spare() uint64 {
	u := tx.e.journal.Usage(tx.e.claim)
	return u.Available - min(u.Available, u.Reserved)
}

// StillFull is Full for a sender who is about to be refused. The journal is asked once
// more: the status that says there is space may not have come yet, while others have seen it.
func (tx *Tx) StillFull() bool { return tx.e.full && tx.e.journal.Status(tx.e.claim).Full }

// HasSpace reports whether so many bytes can be written for something that frees no space:
// they are not those that settlements need. If not, it is refused or waits.
func (tx *Tx) HasSpace(bytes int) bool { return tx.e.hasSpace(bytes) }

// Stuck reports whether the open group could not be appended for lack of space. Nothing
// that writes may be done before it is.
func (tx *Tx) Stuck() bool { return tx.e.stuck }

// Stop makes the engine fail: a machine has contradicted itself.
func (tx *Tx) Stop(err error) { tx.e.failed = err }

// Failed returns why the engine can go no further, nil while it can.
func (tx *Tx) Failed() error { return tx.e.failed }

// Start takes the first step of an operation that is done in steps.
func (tx *Tx) Start(s *Steps) { s.Apply(tx) }

// Later has an operation go on with its next step when the bytes that it has just
// written are durable.
func (tx *Tx) Later(s *Steps, wrote int) {
	w := &tx.e.stepwise
	w.ahead += wrote
	w.behind = tx.e.tail
	w.add(s)
}

// Visits is how many items a step of an operation should visit.
func (tx *Tx) Visits() int { return tx.e.opts.VisitStep }

// Delayed reports whether commands are delayed. One that must not overtake them is
// delayed, too.
func (tx *Tx) Delayed() bool { return len(tx.e.delayed) > 0 }

// Delay has a command applied again when the journal is not busy. False says that too
// many are delayed already.
func (tx *Tx) Delay(c Command) bool { return tx.e.delay(c) }

// Fetch has bodies read beside the engine.
func (tx *Tx) Fetch(f Fetch) { tx.e.fetches.waiting = append(tx.e.fetches.waiting, f) }
