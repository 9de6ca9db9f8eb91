// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/triagemq/triagemq/internal/clock"
)

// machine has the clocks of a computer. Time passes on both; the wall clock is
// also set forward and back.
type machine struct {
	wall    time.Time
	elapsed time.Duration
}

func (m *machine) read() clock.Reading { return clock.Reading{Wall: m.wall, Elapsed: m.elapsed} }

// pass lets time pass.
func (m *machine) pass(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.elapsed += d
}

// setting draws by how much the wall clock is set. When the broker's time, now, is
// far ahead of it already it is not set back further: a restart would not go on
// with that.
func (w *world) setting(wall, now time.Time) time.Duration {
	by := time.Duration(1+w.rng.IntN(w.pick(1000, 5000, 600_000, 7_200_000))) * time.Millisecond
	if w.chance(2) || now.Sub(wall) > 12*time.Hour {
		return by
	}
	return -by
}

// clock lets time pass: a little, by a lock's time, by a day; or sets the clock on
// the wall, after which time has to go on as before.
func (w *world) clock() {
	if w.chance(4) {
		by := w.setting(w.machine.wall, w.now)
		w.machine.wall = w.machine.wall.Add(by)
		w.result.Set++
		w.event("set the clock by %v", by)
		w.passed(0)
		return
	}
	// A tenth of it is whole milliseconds, the unit of times to live.
	d := time.Duration(w.rng.IntN(2000)) * 10 * time.Millisecond
	if w.chance(8) {
		d = 24 * time.Hour
	}
	w.machine.pass(d)
	w.passed(d)
	w.event("clock %d", w.now.UnixMilli())
}

// passed checks the broker's time after d has passed. It must have advanced
// nearly as much and be closer to the wall clock.
func (w *world) passed(d time.Duration) {
	before, off := w.now, w.off
	w.now = w.steady.Now()
	w.off = w.machine.wall.Sub(w.now)
	if got := w.now.Sub(before); got < d-d/10 {
		w.failf("%v have passed, and %v for the broker", d, got)
	}
	if d > 0 && w.off.Abs() > max(off.Abs()-d/10, 0) {
		w.failf("the wall clock was off by %v and %v later still is by %v", off, d, w.off)
	}
}

// boot creates the clock of a new process. It starts when the shards are open.
func (w *world) boot() {
	w.steady = clock.New(w.machine.read)
	w.opts.shard.Clock = w.steady
}
