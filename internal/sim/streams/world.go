// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// world is a run of the simulator.
type world struct {
	ctx   context.Context // of reads; it never ends
	rng   *rand.Rand
	trace hash.Hash
	out   io.Writer // nil is none
	err   error     // what was found; the run ends then

	disk       *vfs.Mem
	segments   uint64
	small      bool // the journal is
	visits     int  // of a step of a snapshot
	wal        *wal.WAL
	hub        *streamserver.Hub
	background []func()
	now        time.Time
	full       bool // the disk is, or was a moment ago

	logs      []*log // of the partitions
	retention retention
	producers []*producer
	readers   []*reader
	groups    map[groupKey]*group
	bodies    int // that were made
	result    result
}

// result is what happened in a run.
type result struct {
	Trace                                                                   [32]byte
	Events, Read, Crashes, Snapshots, Replays, Again, Full, Stolen, Skipped int
}

// run plays a seed.
func run(ctx context.Context, seed uint64, turns int, out io.Writer) (result, error) {
	w := &world{
		ctx: context.WithoutCancel(ctx), rng: rand.New(rand.NewPCG(seed, 14)), trace: sha256.New(), out: out,
		disk: vfs.NewMem(), now: time.UnixMilli(1_700_000_000_000), groups: map[groupKey]*group{},
	}
	w.segments = uint64(w.pick(1<<14, 1<<15, 1<<16))
	w.visits = w.pick(1, 2, 2000)
	w.small = seed%2 == 1
	w.retention.configure(w.now, w.settings(1+w.rng.IntN(3)))
	w.open()
	for range turns {
		if w.err != nil {
			break
		}
		w.turn()
	}
	if w.err == nil {
		w.finish()
	}
	w.result.Snapshots += int(w.hub.Snapshots())
	w.trace.Sum(w.result.Trace[:0])
	if w.err != nil {
		return w.result, fmt.Errorf("seed %d: %w", seed, w.err)
	}
	return w.result, nil
}

// pick returns one of some numbers.
func (w *world) pick(of ...int) int { return of[w.rng.IntN(len(of))] }

// chance is true one time of n.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// event adds a line to the trace.
func (w *world) event(format string, args ...any) {
	fmt.Fprintf(w.trace, format+"\n", args...)
	if w.out != nil {
		fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// failf ends the run.
func (w *world) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
		w.event("FAILED %v", w.err)
	}
}

// settings draws a configuration.
func (w *world) settings(partitions int) streamserver.Settings {
	return streamserver.Settings{
		Partitions:  partitions,
		RetainFor:   time.Duration(w.pick(0, 2, 20, 600, 600)) * time.Second,
		RetainBytes: int64(w.pick(0, 0, 0, 20_000, 100_000)),
	}
}

// open opens the hub on the disk.
func (w *world) open() {
	j, err := wal.Open(vfs.OnDemand(w.disk, vfs.NewFiles(0)), wal.Options{SegmentSize: w.segments, Small: w.small})
	if err != nil {
		w.failf("open the journal: %v", err)
		return
	}
	w.wal, w.background = j, nil
	w.hub, err = streamserver.Open(w.ctx, j, 0, w.retention.set, w.options())
	if err != nil {
		w.failf("open the hub: %v", err)
		return
	}
	for len(w.logs) < w.retention.set.Partitions {
		w.logs = append(w.logs, newLog())
	}
	w.step()
}

func (w *world) options() streamserver.Options {
	return streamserver.Options{
		SnapshotStep: w.visits,
		Go:           func(_ journal.Shard, f func()) { w.background = append(w.background, f) },
		OnDamage:     func(d streamserver.Damage) { w.failf("damage %v", d) },
	}
}

// turn does one thing.
func (w *world) turn() {
	switch n := w.rng.IntN(100); {
	case n < 25:
		w.produce()
	case n < 45:
		w.read()
	case n < 65:
		w.step()
	case n < 80:
		w.commit()
	case n < 85:
		w.work()
	case n < 90:
		w.pass()
	case n < 93:
		w.openReader()
	case n < 95:
		w.closeReader()
	case n < 96:
		w.configure()
	case n < 97:
		w.fill()
	case n < 98:
		w.replays()
	default:
		if w.chance(2) {
			w.crash()
		}
	}
}

// step has the hub do what there is to do.
func (w *world) step() {
	w.hub.Step(w.now)
	if err := w.hub.Failed(); err != nil {
		w.failf("the hub stopped: %v", err)
	}
	if err := w.hub.Check(); err != nil {
		w.failf("%v", err)
	}
}

// commit makes some of what was appended durable.
func (w *world) commit() {
	if err := w.wal.Commit(); err != nil && !errors.Is(err, journal.ErrFull) {
		w.failf("commit: %v", err)
	}
	w.event("commit %d", w.wal.Stats().Batches)
}

// work does one piece of work beside the hub, any of them.
func (w *world) work() {
	if n := len(w.background); n > 0 {
		i := w.rng.IntN(n)
		f := w.background[i]
		w.background = append(w.background[:i], w.background[i+1:]...)
		f()
	}
}

// pass lets time pass.
func (w *world) pass() {
	d := time.Duration(w.pick(1, 50, 1000, 5000, 60_000)) * time.Millisecond
	w.now = w.now.Add(d + time.Duration(w.rng.IntN(int(d))))
	w.retention.pass(w.now)
	w.event("clock %d", w.now.UnixMilli())
}

// fill makes the disk full, or takes that back.
func (w *world) fill() {
	if w.full = !w.full; w.full {
		w.disk.SetOthers(1 << 50)
		w.result.Full++
	} else {
		w.disk.SetOthers(0)
	}
	w.event("full %t", w.full)
}

// configure changes the settings, and perhaps adds a partition.
func (w *world) configure() {
	set := w.settings(w.retention.set.Partitions)
	if set.Partitions < 4 && w.chance(3) {
		set.Partitions++
	}
	was := w.retention
	w.retention.configure(w.now, set)
	w.logsFor(set.Partitions)
	if err := w.hub.Manual().Configure(set, func(err error) {
		if err != nil {
			w.failf("configure %+v after %+v: %v", set, was.set, err)
		}
		w.retention.configured(w.now)
	}); err != nil {
		w.failf("configure: %v", err)
	}
	w.event("configure %+v", set)
}

func (w *world) logsFor(partitions int) {
	for len(w.logs) < partitions {
		w.logs = append(w.logs, newLog())
	}
}

// settle works until nothing is left to do. Records that nobody waits for may take a few
// milliseconds to be committed.
func (w *world) settle() {
	for n := 0; n < 2000 && w.err == nil; n++ {
		w.step()
		for len(w.background) > 0 {
			w.work()
		}
		w.commit()
		if v := w.hub.Engine.Manual().View(); n > 8 && v.Waiting == 0 && v.Delayed == 0 && !v.Snapshotting && !v.Truncating && w.hub.Posted() == 0 {
			return
		}
		w.now = w.now.Add(time.Millisecond)
		w.retention.pass(w.now)
	}
	if !w.full {
		w.failf("the hub does not come to rest: %+v", w.hub.Engine.Manual().View())
	}
}
