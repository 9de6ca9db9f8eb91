// SPDX-License-Identifier: Apache-2.0

package groups

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
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	// grp is the group that has members, and store the one that has claims.
	grp   = "g"
	store = "store"
	// events are in every partition.
	events        = 1000
	maxPartitions = 8
)

// world is a run of the simulator.
type world struct {
	ctx   context.Context
	rng   *rand.Rand
	trace hash.Hash
	out   io.Writer // nil is none
	err   error     // what was found; the run ends then

	disk       *vfs.Mem
	segments   uint64
	visits     int // of a step of a snapshot
	after      uint64
	wal        *wal.WAL
	hub        *streamserver.Hub
	life       int // of the hub: what an earlier one answers is not heard
	background []func()
	now        time.Time
	full       bool

	partitions int // that the hub is to have
	filled     int // partitions that have events
	processes  []*process
	runs       int
	parts      [maxPartitions]known // what the outside knows about partitions of grp
	claims     [maxPartitions]claimed
	result     result
}

// result is what happened in a run.
type result struct {
	Trace                                                         [32]byte
	Grants, Moves, Accepted, Fenced, Rewinds, Crashes, Snapshots  int
	Refused, Zombies, Won, LostClaims, Quiet, Full, Taken, Paused int
}

// run plays a seed.
func run(ctx context.Context, seed uint64, turns int, out io.Writer) (result, error) {
	w := &world{
		ctx: context.WithoutCancel(ctx), rng: rand.New(rand.NewPCG(seed, 15)), trace: sha256.New(), out: out,
		disk: vfs.NewMem(), now: time.UnixMilli(1_700_000_000_000),
	}
	w.segments = uint64(w.pick(1<<14, 1<<15, 1<<16))
	w.visits = w.pick(1, 2, 2000)
	w.after = uint64(w.pick(1<<10, 1<<12, 1<<14))
	w.partitions = 1 + w.rng.IntN(maxPartitions)
	for n := range w.parts {
		w.parts[n] = newKnown()
	}
	for i := range 2 + w.rng.IntN(4) {
		w.processes = append(w.processes, &process{id: fmt.Sprint("p", i)})
	}
	w.open()
	for n := range turns {
		if w.err != nil {
			break
		}
		if n%400 == 399 {
			w.quiet()
		} else {
			w.turn()
		}
	}
	if w.err == nil {
		w.quiet()
	}
	w.result.Snapshots += int(w.hub.Snapshots())
	w.countTaken()
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

// open opens the hub on the disk.
func (w *world) open() {
	j, err := wal.Open(w.disk, wal.Options{SegmentSize: w.segments})
	if err != nil {
		w.failf("open the journal: %v", err)
		return
	}
	w.wal, w.background = j, nil
	w.life++
	w.hub, err = streamserver.Open(w.ctx, j, 0, w.settings(), streamserver.Options{
		SnapshotStep: w.visits, SnapshotAfter: w.after,
		Go: func(_ journal.Shard, f func()) { w.background = append(w.background, f) },
	})
	if err != nil {
		w.failf("open the hub: %v", err)
		return
	}
	w.step()
	w.fillPartitions()
}

func (w *world) settings() streamserver.Settings {
	return streamserver.Settings{Partitions: w.partitions}
}

// fillPartitions sees to it that there is something to checkpoint.
func (w *world) fillPartitions() {
	for w.filled < w.hub.Manual().Partitions() && !w.full && w.err == nil {
		p, _ := w.hub.Manual().Partition(w.filled)
		if p.Next() == 0 {
			done := false
			w.hub.Append(&streamserver.Append{Partition: w.filled, Raw: []byte("events"), Count: events, Done: func(_ stream.SeqNo, err error) {
				if done = true; err != nil {
					w.failf("append: %v", err)
				}
			}})
			for !done && w.err == nil {
				w.step()
				w.commit()
			}
		}
		w.filled++
	}
}

// append sends a batch, so that segments of the journal end.
func (w *world) append() {
	life := w.life
	w.hub.Append(&streamserver.Append{Partition: w.rng.IntN(w.filled), Raw: make([]byte, 6000), Count: 1, Done: func(_ stream.SeqNo, err error) {
		if life == w.life && err != nil && !errors.Is(err, streamserver.ErrDiskFull) && !errors.Is(err, streamserver.ErrStopped) {
			w.failf("append: %v", err)
		}
	}})
}

// turn does one thing.
func (w *world) turn() {
	switch n := w.rng.IntN(100); {
	case n < 22:
		w.step()
	case n < 36:
		w.commit()
	case n < 40:
		w.work()
	case n < 55:
		w.pass()
	case n < 78:
		w.act(w.processes[w.rng.IntN(len(w.processes))])
	case n < 88:
		w.trouble(w.processes[w.rng.IntN(len(w.processes))])
	case n < 92:
		w.claim()
	case n < 95:
		w.operate()
	case n < 97:
		w.append()
	case n < 98:
		w.fill()
	default:
		if w.chance(3) {
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
}

// work does one piece of work beside the hub.
func (w *world) work() {
	if n := len(w.background); n > 0 {
		i := w.rng.IntN(n)
		f := w.background[i]
		w.background = append(w.background[:i], w.background[i+1:]...)
		f()
	}
}

// pass lets time pass. Those who are well report.
func (w *world) pass() {
	d := time.Duration(w.pick(10, 100, 300, 1000, 3000, 5000)) * time.Millisecond
	w.now = w.now.Add(d/2 + time.Duration(w.rng.IntN(int(d))))
	w.report()
	w.event("clock %d", w.now.UnixMilli())
}

// fill makes the disk full, or takes that back.
func (w *world) fill() {
	if w.full = !w.full; w.full {
		w.disk.SetOthers(1 << 50)
		w.result.Full++
		for range 12 { // until the journal has noticed
			w.append()
			w.step()
			w.commit()
		}
	} else {
		w.disk.SetOthers(0)
	}
	w.event("full %t", w.full)
}

// operate does what an operator does.
func (w *world) operate() {
	n, m := w.rng.IntN(w.filled), w.hub.Manual()
	p := &w.parts[n]
	answered := w.answered
	switch w.rng.IntN(6) {
	case 0, 1:
		to := stream.SeqNo(w.rng.IntN(events) - 1)
		p.rewinding(to)
		w.event("rewind %d to %d", n, to)
		w.post(m.Rewind(grp, n, to, w.alive(func(err error) {
			if answered("rewind", err) == nil && err == nil {
				w.result.Rewinds++
			}
		})))
	case 2:
		w.event("move %d away", n)
		w.post(m.MoveAway(grp, n, time.Duration(w.pick(1, 10, 60))*time.Second, w.alive(func(err error) { _ = answered("move away", err) })))
	case 3:
		until := w.now.Add(time.Duration(w.pick(-1, 1, 20)) * time.Second)
		w.event("pause %d until %d", n, until.UnixMilli())
		w.result.Paused++
		w.post(m.Pause(grp, []int{n}, until, w.alive(func(err error) { _ = answered("pause", err) })))
	case 4:
		if w.partitions < maxPartitions && !w.full {
			w.partitions++
			w.event("%d partitions", w.partitions)
			w.post(m.Configure(w.settings(), w.alive(func(err error) {
				if err != nil {
					w.failf("configure: %v", err)
				}
			})))
			w.settle()
			w.fillPartitions()
		}
	default:
		w.replays()
	}
}

// alive leaves out answers of a hub that has crashed since.
func (w *world) alive(fn func(error)) func(error) {
	life := w.life
	return func(err error) {
		if life == w.life {
			fn(err)
		}
	}
}

func (w *world) post(err error) {
	if err != nil {
		w.failf("post: %v", err)
	}
}

// settle works until nothing is left to do.
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
	}
	if !w.full {
		w.failf("the hub does not come to rest: %+v", w.hub.Engine.Manual().View())
	}
}
