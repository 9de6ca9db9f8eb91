// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// A Queue is a [machine.Machine]; package state implements it.

// Replay implements [machine.Machine]. A queue begins with a snapshot or with its very
// first record; a later snapshot only moves bodies. After an error the queue must be
// dropped.
func (q *Queue) Replay(rec []byte, out *machine.Effects) error { return q.core.Replay(rec, out) }

// Tolerate implements [machine.Tolerant].
func (q *Queue) Tolerate() { q.core.Tolerate() }

// Lost implements [machine.Tolerant].
func (q *Queue) Lost() { q.core.Lost() }

// EndReplay implements [machine.Tolerant].
func (q *Queue) EndReplay() { q.core.EndReplay() }

// Missing implements [machine.Tolerant].
func (q *Queue) Missing() int { return q.core.Missing() }

// ConfirmLast logs the highest sequence number, if the replay could not be certain of it.
// It must precede every other command.
func (q *Queue) ConfirmLast(out *Effects) { q.core.ConfirmLast(&out.Effects) }

// Restored implements [machine.Machine].
func (q *Queue) Restored() bool { return q.core.Restored() }

// Snapshot implements [machine.Machine].
func (q *Queue) Snapshot() machine.Snapshot { return q.core.Snapshot() }

// SnapshotSize implements [machine.Machine]. It inspects a few messages only.
func (q *Queue) SnapshotSize() uint64 { return q.core.SnapshotSize() }

// Settling implements [machine.Machine].
func (q *Queue) Settling() (records, bytes uint64) { return q.core.Settling() }

// NextDeadline implements [machine.Machine]: when Tick has work next.
func (q *Queue) NextDeadline() (time.Time, bool) { return q.core.NextDeadline() }

// Latest implements [machine.Machine]: the latest enqueue time assigned so far.
func (q *Queue) Latest() time.Time { return q.core.Latest() }

// Refs implements [machine.Machine]: the bodies of messages and the reasons of dead
// letters, then the states of sessions.
func (q *Queue) Refs(from machine.Cursor, b *machine.Budget, fn func(Ref)) (next machine.Cursor, done bool) {
	return q.core.Refs(from, b, fn)
}

// Check implements [machine.Machine]. It visits every message: for tests, and for the
// owner after a replay.
func (q *Queue) Check() error { return q.core.Check() }

// StateHash hashes everything that a restart must restore, as of now. Two queues with the
// same hash are the same except for their locks.
func (q *Queue) StateHash(now time.Time) [32]byte { return q.core.StateHash(now) }
