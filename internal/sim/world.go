// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// world is one run: a disk, a journal on it, shards on that, and a clock.
type world struct {
	ctx   context.Context // of calls to the journal; nothing ends it
	rng   *rand.Rand
	other *rand.Rand // what other processes do to the disk: the rest of a run does not depend on it
	// durable draws retries, durable locks and saved states: the other draws of a run do not
	// depend on it.
	durable *rand.Rand
	trace   hash.Hash
	out     io.Writer // nil: no trace

	machine machine
	steady  *clock.Clock  // of this life, over the clocks of machine
	now     time.Time     // by steady
	off     time.Duration // by which the wall clock is ahead of now

	turn   int
	disk   *vfs.Mem
	fault  *vfs.Fault
	wal    *wal.WAL
	opts   options
	shards []*shardSim
	// policies are all that were ever drawn, by the meta bytes of the entities
	// that had them.
	policies map[string]*rules

	faulty bool  // the disk is set to fail
	full   bool  // the disk has an end, or was full in this life
	broken error // why the process must end; nil while it runs
	made   int   // messages so far
	saved  int   // states of messages so far
	result result
}

// options are the sizes that a seed chose; small ones make rare things frequent.
type options struct {
	segment uint64
	disk    int64 // its size; zero has no end
	shards  int
	shard   queueserver.Options
}

// result contains statistics of a run.
type result struct {
	Trace       [sha256.Size]byte // the same for the same seed
	Messages    int
	Takes       int
	Crashes     int
	CrashChecks int // simulated crashes after which the process continued
	Snapshots   uint64
	Full        int // disks that were full
	Stuck       int // times that a shard waited because there was no space at all
	Refused     int // sends that a policy rejected
	Evicted     int // messages that were evicted
	Recalls     int // messages recalled
	Set         int // times that the wall clock was set
	Returns     int // messages that were taken and not delivered
	Retries     int // messages that had to wait for a retry
	Saves       int // states that were saved
	Renewals    int // durable ones
	Survivors   int // durable locks that a crash has left
}

// violation is a broken rule.
type violation struct{ error }

// Run plays a seed for a number of turns. trace, if not nil, gets a line for
// everything that happens. The error is the first broken rule.
func run(ctx context.Context, seed uint64, turns int, trace io.Writer) (r result, err error) {
	w := &world{
		ctx:     ctx,
		rng:     rand.New(rand.NewPCG(seed, 1)),
		other:   rand.New(rand.NewPCG(seed, 3)),
		durable: rand.New(rand.NewPCG(seed, 4)),
		trace:   sha256.New(),
		out:     trace,
		disk:    vfs.NewMem(),

		machine: machine{wall: time.Unix(1_700_000_000, 0).UTC()},

		policies: make(map[string]*rules),
	}
	defer func() {
		if v := recover(); v != nil {
			broken, ok := v.(violation)
			if !ok {
				panic(v)
			}
			err = fmt.Errorf("seed %d, turn %d: %w", seed, w.turn, broken.error)
		}
		w.result.Messages = w.made
		w.trace.Sum(w.result.Trace[:0])
		r = w.result
	}()
	w.opts = options{
		segment: uint64(w.pick(16, 32, 64)) << 10,
		shards:  w.pick(1, 1, 1, 2, 2, 2, 2, 3, 3, 5, 8, 64),
		shard: queueserver.Options{
			CacheBytes:    w.pick(1, 2<<10, 64<<10),
			SnapshotAfter: uint64(w.pick(1, 2, 4, 16)) << 10,
			SnapshotStep:  w.pick(1, 7, 150),
			VisitStep:     w.pick(1, 5, 1000),
			DispatchStep:  1 + w.other.IntN(20),
		},
	}
	if w.other.IntN(2) == 0 {
		// A store takes two files for its manifest, and a few segments to begin with.
		w.opts.segment = 16 << 10
		w.opts.disk = 48<<10 + int64(w.opts.segment)*(2+w.other.Int64N(4)) + int64(w.opts.shards)*(1+w.other.Int64N(4))<<10
		w.disk.SetSize(w.opts.disk)
	}
	for n := range w.opts.shards {
		w.shards = append(w.shards, newShardSim(w, journal.Shard(n)))
	}
	w.start(w.disk)
	for w.turn = range turns {
		w.play()
	}
	w.finish()
	return r, nil
}

// pick returns one of several numbers.
func (w *world) pick(of ...int) int { return of[w.rng.IntN(len(of))] }

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

func (w *world) event(format string, args ...any) {
	if w.out == nil {
		fmt.Fprintf(w.trace, format, args...)
		return
	}
	line := fmt.Sprintf(format, args...)
	io.WriteString(w.trace, line)
	fmt.Fprintln(w.out, line)
}

func (w *world) failf(format string, args ...any) { panic(violation{fmt.Errorf(format, args...)}) }

// start opens what is on a disk.
func (w *world) start(disk *vfs.Mem) {
	w.disk, w.fault = disk, vfs.NewFault(disk)
	w.broken, w.faulty, w.full = nil, false, w.opts.disk > 0
	w.boot()
	j, shards, err := w.open(w.fault)
	if err != nil {
		w.failf("start: %v", err)
	}
	w.wal = j
	w.now = w.steady.Now()
	w.off = w.machine.wall.Sub(w.now)
	for i, h := range w.shards {
		h.s = shards[i]
	}
	if w.opts.disk > 0 && w.other.IntN(3) == 0 {
		w.fill(w.other)
	}
}

// open recovers a store.
func (w *world) open(disk vfs.FS) (*wal.WAL, []*queueserver.Shard, error) {
	j, err := wal.Open(disk, wal.Options{SegmentSize: w.opts.segment})
	if err != nil {
		return nil, nil, err
	}
	numbers := make([]journal.Shard, len(w.shards))
	for i, h := range w.shards {
		numbers[i] = h.number
	}
	opts := w.opts.shard
	opts.Go = func(n journal.Shard, f func()) {
		h := w.shards[n]
		h.background = append(h.background, f)
	}
	shards, err := queueserver.OpenAll(w.ctx, j, numbers, opts)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range shards {
		if err := s.Check(); err != nil {
			return nil, nil, err
		}
	}
	return j, shards, nil
}

// play is one turn: clients, clock and disk each may do something.
func (w *world) play() {
	if w.broken != nil {
		for _, h := range w.shards {
			h.step() // a process that is about to end may still say what it knows
		}
		w.crash()
		return
	}
	h := w.shards[w.rng.IntN(len(w.shards))]
	if !h.s.Stuck() { // it does nothing before it has done what it began
		for range w.rng.IntN(5) {
			h.client()
		}
	}
	switch n := w.rng.IntN(100); {
	case n < 60:
		h.step()
		w.commit()
	case n < 80: // a slow disk: many steps to one commit
		h.step()
	case n < 83:
		w.commit()
	case n < 85:
		h.work(1 + w.rng.IntN(3))
	case n < 88:
		w.settle()
	case n < 93:
		w.clock()
	case n < 95:
		w.disrupt()
	case n < 97:
		w.crash()
	default:
		h.step()
	}
	if w.broken == nil && w.chance(9) {
		w.simulateCrash()
	}
}

// commit makes one batch durable.
func (w *world) commit() {
	if w.broken != nil {
		return
	}
	if err := w.wal.Commit(); err != nil {
		w.stopped(err)
	}
	w.event("commit %+v", w.wal.Stats())
}

// stopped records that the process must end. Only a disk that is set to fail is
// a reason; a full disk never is.
func (w *world) stopped(err error) {
	if !w.faulty {
		w.failf("stopped without a reason: %v", err)
	}
	w.event("stopped %v", err)
	w.broken = err
}

// settle runs until everything is at rest; then no operation may be left
// without an answer.
func (w *world) settle() {
	asked := true // an operation has no answer: it may take many steps
	for round := 0; round < 40 || asked && round < 2000; round++ {
		rest := true
		asked = false
		for _, h := range w.shards {
			if w.broken == nil {
				h.step()
				h.work(1 << 30)
				at, due := h.s.NextDeadline()
				rest = rest && h.open == 0 && h.granting == 0 && !(due && at.Before(later(h.now, w.now).Add(100*time.Millisecond))) && h.s.Posted() == 0
				asked = asked || h.open > 0 && !h.s.Stuck()
			}
		}
		w.commit()
		if w.broken != nil || rest {
			break
		}
	}
	for _, h := range w.shards {
		for _, u := range h.unread {
			if w.broken == nil {
				h.read(u)
			}
		}
		h.unread = nil
	}
	for range 3 { // a read body may lead to a delivery, which waits for the disk then
		for _, h := range w.shards {
			if w.broken == nil {
				h.step()
				h.work(1 << 30)
				w.commit()
			}
		}
	}
	for _, h := range w.shards {
		if w.broken == nil {
			h.rested()
		}
	}
}

// rested checks what must be true when everything is at rest.
func (h *shardSim) rested() {
	h.step()
	if h.w.broken != nil {
		return
	}
	if h.s.Stuck() {
		h.w.result.Stuck++
		return // nothing is answered before there is space
	}
	if h.open > 0 {
		h.w.failf("shard %d: %d operations have no answer", h.number, h.open)
	}
	if h.granting > 0 {
		h.w.failf("shard %d: %d consumers have a session and no answer", h.number, h.granting)
	}
	// A taken message was delivered or returned, even if its consumer has left
	// meanwhile.
	for key, t := range h.taken {
		if !t.settled {
			h.w.failf("%v: message %d was taken and neither delivered nor returned", key.place, key.seq)
		}
	}
	for p, ms := range h.held {
		for seq := range ms {
			h.w.failf("%v: message %d still waits for its body", p, seq)
		}
	}
	for _, e := range h.sorted() {
		for part, q := range e.parts {
			h.askedBack(place{e.ID, queueserver.SubQueue(part)}, q)
			h.notHoarded(place{e.ID, queueserver.SubQueue(part)}, q)
		}
	}
	for _, c := range h.consumers {
		q := h.queue(c.place)
		if c.over || c.consumer == 0 || q == nil || c.delivered >= c.limit || q.cfg.ReceivePaused {
			continue
		}
		h.follow(c.place)
		next := q.choices(h.now, c.accepts)
		if q.cfg.Sessions {
			next = q.first(h.now, c.want.Session.ID)
		}
		for _, next := range next {
			h.w.failf("%v: message %d waits for a consumer that has credit for %d more", c.place, next.seq, c.limit-c.delivered)
		}
	}
}

// disrupt makes the disk fail, fills it, or frees it again.
func (w *world) disrupt() {
	err := errors.New("sim: input/output error")
	switch w.rng.IntN(4) {
	case 0:
		w.fill(w.rng)
	case 1:
		w.event("free")
		w.fault.SetFree(-1)
		w.disk.SetOthers(0)
	default:
		ops := []vfs.Op{vfs.OpSync, vfs.OpSync, vfs.OpWrite, vfs.OpWrite, vfs.OpCreate, vfs.OpRename, vfs.OpSyncDir, vfs.OpRemove}
		op := ops[w.rng.IntN(len(ops))]
		w.event("fail %s", op)
		w.faulty = true
		w.fault.FailNth(op, 1+w.rng.IntN(3), err)
	}
}

// fill has other processes take most of what is free, or all of it.
func (w *world) fill(rng *rand.Rand) {
	w.event("full")
	w.full = true
	w.result.Full++
	left := int64(rng.IntN(3)) * int64(w.opts.segment) / 2
	if w.opts.disk == 0 {
		w.fault.SetFree(left)
		return
	}
	space, err := w.disk.Space()
	if err != nil {
		w.failf("space: %v", err)
	}
	w.disk.SetOthers(w.opts.disk) // as much as there is
	if others := space.Free - left; others > 0 {
		w.disk.SetOthers(others)
	}
}

// finish ends a run: everything comes to rest, crashes once more, and is
// recovered.
func (w *world) finish() {
	if w.broken == nil {
		w.fault.Before(nil)
		w.fault.SetFree(-1)
		w.disk.SetSize(1 << 40)
		w.disk.SetOthers(0)
		w.settle()
		for _, h := range w.shards {
			if w.broken == nil && h.s.Stuck() {
				w.failf("shard %d: there is space, and it is stuck", h.number)
			}
		}
	}
	w.crash()
	for _, h := range w.shards {
		w.result.Snapshots += h.s.Snapshots()
	}
}
