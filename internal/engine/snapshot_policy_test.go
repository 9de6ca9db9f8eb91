// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// A2: when a snapshot is worth its while, case by case.
func TestWhenASnapshotIsWorthwhile(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, tt := range []struct {
		name string
		u    upkeep
		want bool
	}{
		{"nothing was written", upkeep{}, false},
		{"a little was written", upkeep{own: 63 * mib}, false},
		{"much was written", upkeep{own: 64 * mib}, true},
		{"much, but a snapshot is larger", upkeep{own: 64 * mib, size: 40 * mib}, false},
		{"twice the size of a snapshot", upkeep{own: 80 * mib, size: 40 * mib}, true},
		{"much was freed, and little of it holds a block", upkeep{garbage: 64 * mib, written: 400 * mib, live: 300 * mib}, false},
		{"much was freed, most is dead", upkeep{garbage: 64 * mib, written: 400 * mib, live: 100 * mib}, true},
		{"others have written, and are held back", upkeep{log: journal.Usage{HeldBack: 64 * mib}}, true},
		{"others have written, another holds them back", upkeep{log: journal.Usage{}}, false},
		{"others have taken snapshots", upkeep{log: journal.Usage{HeldBack: 640 * mib, Reserved: 2 * 320 * mib}}, false},
		{"quiet: a little was written", upkeep{own: 8 * mib, quiet: true}, true},
		{"quiet: next to nothing was written", upkeep{own: 100 * kib, quiet: true}, false},
		{"quiet, on a small disk: two blocks were written", upkeep{own: 2 * mib, quiet: true, block: mib}, true},
		{"quiet, on a small disk: others have written two blocks", upkeep{quiet: true, block: mib, log: journal.Usage{HeldBack: 2 * mib}}, true},
		{"full: it frees more than it takes", upkeep{gain: 5 * mib, size: 4 * mib, full: true, log: journal.Usage{Available: 5 * mib}}, true},
		{"full: it frees little more than it takes", upkeep{gain: 5 * mib, size: 4.5 * mib, full: true, log: journal.Usage{Available: 6 * mib}}, false},
		{"full: it could not be finished", upkeep{gain: 64 * mib, size: 4 * mib, full: true, log: journal.Usage{Available: 4 * mib}}, false},
		{"full: what is moved takes space, too", upkeep{gain: 5 * mib, size: mib, moved: 4 * mib, full: true, log: journal.Usage{Available: 64 * mib}}, false},
		{"full: replay is long, which frees nothing", upkeep{own: 640 * mib, garbage: 640 * mib, written: 700 * mib, full: true,
			log: journal.Usage{HeldBack: 700 * mib, Available: 64 * mib}}, false},
	} {
		tt.u.after = 64 * mib
		if tt.u.block == 0 {
			tt.u.block = 64 * mib
		}
		if got := tt.u.shouldSnapshot(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A3: the histogram of steps files a step under the first bound that it does not
// exceed.
func TestStepsAreCountedByHowLongTheyTook(t *testing.T) {
	var c counters
	var st Stats
	for i, took := range map[int]time.Duration{
		0:               st.StepBound(0),
		1:               st.StepBound(0) + 1,
		5:               st.StepBound(5),
		stepBuckets - 1: time.Minute,
	} {
		c.stepped(took)
		if got := c.steps[i].Load(); got != 1 {
			t.Errorf("a step of %v: bucket %d has %d, want 1", took, i, got)
		}
	}
	if got := time.Duration(c.longest.Load()); got != time.Minute {
		t.Errorf("the longest took %v, want a minute", got)
	}
}
