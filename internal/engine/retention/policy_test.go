// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

// A2: when a snapshot is taken, case by case.
func TestShouldSnapshot(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, tt := range []struct {
		name string
		u    State
		want bool
	}{
		{"nothing was written", State{}, false},
		{"a little was written", State{Own: 63 * mib}, false},
		{"much was written", State{Own: 64 * mib}, true},
		{"much, but a snapshot is larger", State{Own: 64 * mib, Size: 40 * mib}, false},
		{"twice the size of a snapshot", State{Own: 80 * mib, Size: 40 * mib}, true},
		{"much was freed, and little of it holds a segment", State{Garbage: 64 * mib, Written: 400 * mib, Live: 300 * mib}, false},
		{"much was freed, most is dead", State{Garbage: 64 * mib, Written: 400 * mib, Live: 100 * mib}, true},
		{"bodies stay: most is dead, and no segment is", State{Garbage: 64 * mib, Written: 400 * mib, Live: 100 * mib, Stay: true}, false},
		{"bodies stay: segments are dead", State{Garbage: 64 * mib, Written: 400 * mib, Live: 300 * mib, Stay: true, Gain: 64 * mib}, true},
		{"bodies stay: segments were dead before, too", State{Garbage: mib, Stay: true, Gain: 64 * mib}, false},
		{"bodies stay: much was written", State{Own: 64 * mib, Stay: true}, true},
		{"others have written, and are held back", State{Log: journal.Usage{HeldBack: 64 * mib}}, true},
		{"others have written, another holds them back", State{Log: journal.Usage{}}, false},
		{"others have taken snapshots", State{Log: journal.Usage{HeldBack: 640 * mib, Reserved: 2 * 320 * mib}}, false},
		{"quiet: a little was written", State{Own: 8 * mib, Quiet: true}, true},
		{"quiet: next to nothing was written", State{Own: 100 * kib, Quiet: true}, false},
		{"quiet, on a small disk: two segments were written", State{Own: 2 * mib, Quiet: true, SegmentSize: mib}, true},
		{"quiet, on a small disk: others have written two segments", State{Quiet: true, SegmentSize: mib, Log: journal.Usage{HeldBack: 2 * mib}}, true},
		{"full: it frees more than it takes", State{Gain: 5 * mib, Size: 4 * mib, Full: true, Log: journal.Usage{Available: 5 * mib}}, true},
		{"full: it frees little more than it takes", State{Gain: 5 * mib, Size: 4.5 * mib, Full: true, Log: journal.Usage{Available: 6 * mib}}, false},
		{"full: it could not be finished", State{Gain: 64 * mib, Size: 4 * mib, Full: true, Log: journal.Usage{Available: 4 * mib}}, false},
		{"full: what is moved takes space, too", State{Gain: 5 * mib, Size: mib, Moved: 4 * mib, Full: true, Log: journal.Usage{Available: 64 * mib}}, false},
		{"full: replay is long, which frees nothing", State{Own: 640 * mib, Garbage: 640 * mib, Written: 700 * mib, Full: true,
			Log: journal.Usage{HeldBack: 700 * mib, Available: 64 * mib}}, false},
	} {
		tt.u.After = 64 * mib
		if tt.u.SegmentSize == 0 {
			tt.u.SegmentSize = 64 * mib
		}
		if got := tt.u.ShouldSnapshot(); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
