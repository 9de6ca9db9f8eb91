// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// stepBuckets is the number of buckets of the histogram of steps: each ends at
// twice the one before, from 16 µs to half a second, and the last has no end.
const stepBuckets = 17

// firstStepBucket is the end of the first bucket.
const firstStepBucket = 16 * time.Microsecond

// Stats counts what an engine did since it was opened.
type Stats struct {
	// Steps counts steps by how long they took; see StepBound. All of what the
	// engine does waits while a step is under way.
	Steps [stepBuckets]uint64
	// StepTime is what all of them took, LongestStep what the longest did.
	StepTime, LongestStep time.Duration
	// Snapshots is how many were begun, earlier lives included.
	Snapshots uint64
	// Written is the bytes of records appended, SnapshotBytes those of them that
	// were written for snapshots, bodies that were moved included.
	Written, SnapshotBytes uint64
	// Stuck says that for a second there was no space on the disk to write anything.
	Stuck bool
	// Moved says that another owner has claimed the history: the engine has stopped.
	Moved bool
}

// StepBound returns where bucket i of Steps ends; the last one does not.
func (Stats) StepBound(i int) time.Duration { return firstStepBucket << i }

// counters are the numbers behind Stats. The engine's goroutine writes them, anyone
// may read them.
type counters struct {
	steps                  [stepBuckets]atomic.Uint64
	stepTime, longest      atomic.Int64
	snapshots              atomic.Uint64
	written, snapshotBytes atomic.Uint64
	moved, stuck           atomic.Bool
}

// stepped counts a step.
func (c *counters) stepped(took time.Duration) {
	i := bits.Len64(uint64(max(0, took-1)) / uint64(firstStepBucket))
	c.steps[min(i, stepBuckets-1)].Add(1)
	c.stepTime.Add(int64(took))
	if int64(took) > c.longest.Load() {
		c.longest.Store(int64(took))
	}
}

// publish makes what the engine counts for itself visible to others.
func (e *Engine) publish() {
	e.counters.snapshots.Store(e.snapshot.number)
	e.counters.written.Store(e.written.All)
	e.counters.snapshotBytes.Store(e.written.Snapshots)
	e.counters.stuck.Store(e.stuck && e.now.Sub(e.stuckSince) >= time.Second)
}

// Stats returns the numbers as they are now. It may be called from any goroutine.
func (e *Engine) Stats() Stats {
	c := &e.counters
	st := Stats{
		StepTime:    time.Duration(c.stepTime.Load()),
		LongestStep: time.Duration(c.longest.Load()),
		Snapshots:   c.snapshots.Load(),
		Written:     c.written.Load(), SnapshotBytes: c.snapshotBytes.Load(),
		Moved: c.moved.Load(), Stuck: c.stuck.Load(),
	}
	for i := range st.Steps {
		st.Steps[i] = c.steps[i].Load()
	}
	return st
}
