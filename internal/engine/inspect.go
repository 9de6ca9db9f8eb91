// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/machine"
)

// What a caller that steps an engine by hand needs beside Step. None of it is for use
// while Run is running.

// Failed returns why the engine can go no further, nil while it can.
func (e *Engine) Failed() error { return e.failed }

// Stuck reports whether the engine waits for space on the disk, and does nothing else.
func (e *Engine) Stuck() bool { return e.stuck }

// Short reports whether there is so little left on the disk beside what settlements need that
// nothing falls due.
func (e *Engine) Short() bool { return e.tooShortToTick() }

// Posted returns how many commands wait in the mailbox.
func (e *Engine) Posted() int {
	e.mail.mu.Lock()
	defer e.mail.mu.Unlock()
	return len(e.mail.cs) - e.mail.head
}

// Snapshots returns how many snapshots were begun, earlier lives included.
func (e *Engine) Snapshots() uint64 { return e.snapshot.number }

// Check compares everything the engine counts with what its machines hold.
func (e *Engine) Check() error {
	live := make(map[uint64]uint64)
	count := func(ref machine.Ref) { live[e.live.SegmentOf(ref)] += uint64(ref.Size) }
	for _, id := range slices.Sorted(maps.Keys(e.units)) {
		u := e.units[id]
		if err := u.Machine.Check(); err != nil {
			return fmt.Errorf("unit %d: %w", id, err)
		}
		machine.AllRefs(u.Machine, count)
	}
	for _, d := range e.dropped {
		rest := *d
		rest.free(math.MaxInt, count)
	}
	for _, b := range e.live.Segments() {
		u := e.live.Usage(b)
		if u.Live != live[b] {
			return fmt.Errorf("invariant 2: segment %d counts %d live bytes, found %d", b, u.Live, live[b])
		}
		delete(live, b)
	}
	for b, n := range live {
		return fmt.Errorf("invariant 2: segment %d has %d live bytes and is not counted", b, n)
	}
	for i := 1; i < len(e.waiting); i++ {
		if e.waiting[i].at < e.waiting[i-1].at {
			return fmt.Errorf("invariant 1: %d waits behind %d", e.waiting[i].at, e.waiting[i-1].at)
		}
	}
	return nil
}
