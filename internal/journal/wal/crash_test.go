// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// TestCrashAtEveryDiskCall runs random work and cuts the power before every
// single call that changes the disk, in each of the ways that vfs.Mem knows.
// Every time it recovers what is left and compares it with what it was promised.
func TestCrashAtEveryDiskCall(t *testing.T) {
	t.Parallel()
	var next, points, again, rebuilt, refused atomic.Int64
	t.Run("histories", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for points.Load() < crashPoints && !t.Failed() {
					seed := uint64(next.Add(1))
					h := newHistory(t, seed)
					h.run()
					points.Add(h.points)
					again.Add(h.again)
					rebuilt.Add(h.rebuilt)
					refused.Add(h.refused)
					if t.Failed() {
						t.Fatalf("seed %d", seed)
					}
				}
			})
		}
	})
	t.Logf("%d crash points, %d of them during recovery from another crash; %d lost manifests; %d calls refused by a full disk",
		points.Load(), again.Load(), rebuilt.Load(), refused.Load())
}

// history is one run of random work, with a model of what must survive it.
type history struct {
	t     *testing.T
	rng   *rand.Rand
	mem   *vfs.Mem
	fault *vfs.Fault
	w     *WAL

	limited bool // the disk is small, and runs full
	claimed bool // every shard has been, once

	points, again, rebuilt, refused int64

	// groups are all ever appended, in order; a crash may leave any prefix of
	// them that contains those up to durable.
	groups  []group
	durable journal.Position
	shards  []*modelShard
}

type group struct {
	shard   journal.Shard
	at      []journal.Position
	payload []string
}

func (g group) last() journal.Position { return g.at[len(g.at)-1] }

type modelShard struct {
	claim journal.Claim
	epoch uint32 // of the last claim that returned
	// keeps are those that a crash may leave: the last one that Truncate
	// returned from, and the one it is at work on.
	keeps []journal.Retain
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{t: t, rng: rand.New(rand.NewPCG(seed, 0)), mem: vfs.NewMem()}
	h.fault = vfs.NewFault(h.mem)
	if h.limited = seed%3 == 0; h.limited {
		h.mem.SetSize(60<<10 + h.rng.Int64N(100<<10))
	}
	for range 3 {
		h.shards = append(h.shards, &modelShard{keeps: make([]journal.Retain, 1)})
	}
	return h
}

// run does some work and crashes before every call of it.
func (h *history) run() {
	h.fault.Before(func(op vfs.Op, _ string) error {
		if !changes(op) {
			return nil
		}
		for way := range uint64(4) {
			h.crash(h.rng.Uint64()&^3 | way)
		}
		return nil
	})
	h.open()
	for range 40 {
		if h.t.Failed() {
			return
		}
		h.step()
	}
	h.fault.Before(nil)
	if err := h.w.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
}

// changes reports whether a call changes the disk.
func changes(op vfs.Op) bool {
	switch op {
	case vfs.OpRead, vfs.OpOpen, vfs.OpList, vfs.OpMkdir, vfs.OpLock:
		return false
	}
	return true
}

func (h *history) open() {
	w, err := Open(h.fault, Options{SegmentSize: 8 << 10})
	if err != nil {
		h.t.Fatalf("open: %v", err)
	}
	h.w = w
	for i := range h.shards {
		h.claim(journal.Shard(i))
	}
	h.claimed = true
}

func (h *history) claim(shard journal.Shard) {
	m := h.shards[shard]
	c, records, err := journal.ClaimOne(ctx, h.w, shard)
	if err != nil {
		h.t.Fatalf("claim: %v", err)
	}
	for _, err := range records {
		if err != nil {
			h.t.Fatalf("replay: %v", err)
		}
	}
	m.claim, m.epoch = c, c.Epoch
	h.w.Reserve(c, journal.Reservation{Snapshots: h.rng.Uint64N(30 << 10)})
	h.w.Watch(c, func(s journal.Status) { h.durable = s.Durable })
}

func (h *history) step() {
	switch n := h.rng.IntN(40); {
	case n < 23:
		h.append()
	case n < 24:
		h.w.Reserve(h.shards[h.rng.IntN(len(h.shards))].claim, journal.Reservation{Snapshots: h.rng.Uint64N(60 << 10)})
	case n < 35:
		if err := h.w.Commit(); err != nil {
			h.t.Fatalf("commit: %v", err)
		}
	case n < 38:
		h.truncate(h.shards[h.rng.IntN(len(h.shards))])
	case n < 39:
		h.claim(journal.Shard(h.rng.IntN(len(h.shards))))
	default:
		if err := h.w.Close(); err != nil {
			h.t.Fatalf("close: %v", err)
		}
		h.open()
	}
}

func (h *history) append() {
	shard := journal.Shard(h.rng.IntN(len(h.shards)))
	g := group{shard: shard}
	var records [][]byte
	for i := range 1 + h.rng.IntN(4) {
		// Sizes at which a frame fills whole sectors are the ones to fear.
		size := []int{0, 100, 232, 488, 1000}[h.rng.IntN(5)] + 9*h.rng.IntN(2)
		b := make([]byte, size)
		copy(b, fmt.Sprintf("%d.%d", len(h.groups), i))
		records = append(records, b)
		g.payload = append(g.payload, string(b))
	}
	g.at = make([]journal.Position, len(records))
	// Append may touch the disk, and so crash, but not once the group is in.
	err := h.w.Append(h.shards[shard].claim, &journal.Group{Records: records, At: g.at, Use: journal.Use(h.rng.IntN(2))})
	if errors.Is(err, journal.ErrBusy) || h.full(err) {
		return
	}
	if err != nil {
		h.t.Fatalf("append: %v", err)
	}
	h.groups = append(h.groups, g)
}

// full reports whether an error is what a full disk may say.
func (h *history) full(err error) bool {
	if !h.limited || !errors.Is(err, journal.ErrFull) {
		return false
	}
	h.refused++
	return true
}

// truncate keeps a random suffix, and some segments before it.
func (h *history) truncate(m *modelShard) {
	var own []journal.Position
	for _, g := range h.groups {
		if g.shard == m.claim.Shard {
			own = append(own, g.at...)
		}
	}
	old := m.keeps[0]
	own = slices.DeleteFunc(own, func(p journal.Position) bool { return p < old.From })
	if len(own) == 0 {
		return
	}
	keep := journal.Retain{From: own[h.rng.IntN(len(own))]}
	for _, b := range old.Segments {
		if h.rng.IntN(2) == 0 {
			keep.Segments = append(keep.Segments, b)
		}
	}
	for _, p := range own {
		if b := m.claim.Segment(p); b < m.claim.Segment(keep.From) && h.rng.IntN(8) == 0 && !slices.Contains(keep.Segments, b) {
			keep.Segments = append(keep.Segments, b)
		}
	}
	slices.Sort(keep.Segments)
	m.keeps = append(m.keeps, keep)
	err := h.w.Truncate(ctx, m.claim, keep)
	if h.full(err) {
		return // it may be in the log already, and count if the files are lost
	}
	if err != nil {
		h.t.Fatalf("truncate: %v", err)
	}
	m.keeps = []journal.Retain{keep}
}

// crash cuts the power now and checks what is left; then, now and then, cuts it
// again in the middle of recovering from that.
func (h *history) crash(seed uint64) {
	if h.t.Failed() {
		return
	}
	disk := h.mem.CrashClone(seed)
	disk.SetSize(1 << 40) // TestRestartOnAFullDisk is about what is not
	h.points++
	if h.rng.IntN(4) == 0 {
		disk = h.crashRecovery(disk)
	}
	var lost *vfs.Mem
	if h.claimed && h.rng.IntN(8) == 0 {
		lost = disk.CrashClone(0)
	}
	if err := h.check(disk); err != nil {
		h.t.Errorf("crash %d with seed %d: %v", h.points, seed, err)
	}
	if lost != nil {
		if err := h.rebuild(lost); err != nil {
			h.t.Errorf("crash %d with seed %d, manifest lost: %v", h.points, seed, err)
		}
	}
}

// rebuild loses the manifest on top of the crash, repairs the store and checks
// that nothing is lost with it.
func (h *history) rebuild(disk *vfs.Mem) error {
	if h.limited && leftOut(disk) {
		return nil
	}
	for _, name := range store.CopyNames {
		if err := disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	done, err := repair.Repair(disk, repair.DropDamaged)
	if err != nil {
		return err
	}
	if len(done.Dropped) > 0 {
		return fmt.Errorf("repair: dropped %v", done.Dropped)
	}
	h.rebuilt++
	return h.check(disk)
}

// leftOut reports whether the log lacks the last manifest, which happens if the disk
// was full when that was written.
func leftOut(disk *vfs.Mem) bool {
	found, err := store.ReadCopies(disk)
	if err != nil {
		return false
	}
	m, _, err := found.Best()
	if err != nil || m == nil {
		return false
	}
	var logged *format.Manifest // the last one in the log
	for e, err := range repair.Dump(disk) {
		if err == nil && e.Manifest {
			if logged, err = format.DecodeManifest(e.File, e.Payload); err != nil {
				return false
			}
		}
	}
	return logged == nil || logged.Generation < m.Generation && !reflect.DeepEqual(logged.Shards, m.Shards)
}

// crashRecovery opens the store and crashes at a random call of that.
func (h *history) crashRecovery(disk *vfs.Mem) *vfs.Mem {
	fault := vfs.NewFault(disk)
	left, crashed := h.rng.IntN(12), disk
	seed := h.rng.Uint64()
	fault.Before(func(vfs.Op, string) error {
		if left--; left == 0 {
			crashed = disk.CrashClone(seed)
		}
		return nil
	})
	w, err := Open(fault, Options{})
	if err != nil {
		h.t.Errorf("recover: %v", err)
		return disk
	}
	if crashed == disk {
		// Never reached: go on with a process that was merely killed.
		return disk.CrashClone(seed)
	}
	_ = w // killed: never closed
	h.points++
	h.again++
	return crashed
}

// check recovers a disk and compares it with the model, then makes sure that the
// store goes on.
func (h *history) check(disk *vfs.Mem) error {
	if _, err := disk.Open(format.ManifestName); err != nil && h.w != nil {
		return fmt.Errorf("the manifest is lost: %w", err)
	}
	if h.claimed {
		if _, err := repair.Verify(disk); err != nil {
			return fmt.Errorf("a crash is taken for damage: %w", err)
		}
	}
	w, err := Open(disk, Options{SegmentSize: 8 << 10})
	if err != nil {
		return err
	}
	claims, got, err := replayedAll(w, len(h.shards))
	if err != nil {
		return err
	}
	survived := h.durable
	for i := range h.shards {
		if epoch := claims[i].Epoch; epoch <= h.shards[i].epoch {
			return fmt.Errorf("shard %d: epoch %d again", i, epoch)
		}
		if n := len(got[i]); n > 0 {
			survived = max(survived, got[i][n-1].At)
		}
	}
	for i, m := range h.shards {
		if err := h.compare(w, journal.Shard(i), m, got[i], survived); err != nil {
			return err
		}
	}
	return h.goOn(disk, w, claims[0], len(got[0]))
}

// compare checks the replay of one shard: it must be what was appended up to
// survived, whole groups only, from one of the places that it may start from.
func (h *history) compare(w *WAL, shard journal.Shard, m *modelShard, got []journal.Record, survived journal.Position) error {
	var err error
	for _, keep := range m.keeps {
		if err = h.compareKeep(w, shard, keep, got, survived); err == nil {
			return nil
		}
	}
	return err
}

func (h *history) compareKeep(w *WAL, shard journal.Shard, keep journal.Retain, got []journal.Record, survived journal.Position) error {
	for i, g := range h.groups {
		if g.at[0] <= survived && survived < g.last() {
			return fmt.Errorf("group %d is torn: it is at %v, and the log survived up to %d", i, g.at, survived)
		}
		if g.shard != shard || g.last() > survived {
			continue
		}
		for n, at := range g.at {
			switch {
			case at >= keep.From:
				if len(got) == 0 {
					return fmt.Errorf("record %d.%d at %d is lost; survived %d, durable %d", i, n, at, survived, h.durable)
				}
				if got[0].At != at || string(got[0].Payload) != g.payload[n] {
					return fmt.Errorf("record %d.%d at %d: got %.10q at %d", i, n, at, got[0].Payload, got[0].At)
				}
				got = got[1:]
			case slices.Contains(keep.Segments, uint64(at)/w.segmentSize):
				b, err := journal.ReadOne(ctx, w, at, nil)
				if err != nil || string(b) != g.payload[n] {
					return fmt.Errorf("kept record %d.%d at %d: got %.10q, %v", i, n, at, b, err)
				}
			}
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("shard %d: record %.10q at %d was never appended, or not there", shard, got[0].Payload, got[0].At)
	}
	return nil
}

// goOn appends to a recovered store, kills it and looks again.
func (h *history) goOn(disk *vfs.Mem, w *WAL, c journal.Claim, before int) error {
	at := make([]journal.Position, 1)
	if err := w.Append(c, &journal.Group{Records: [][]byte{[]byte("after the crash")}, At: at}); err != nil {
		return fmt.Errorf("append after recovery: %w", err)
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("commit after recovery: %w", err)
	}
	w, err := Open(disk.CrashClone(0), Options{})
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	_, got, err := replayed(w, c.Shard)
	if err != nil {
		return err
	}
	if len(got) != before+1 || got[before].At != at[0] || string(got[before].Payload) != "after the crash" {
		return fmt.Errorf("second recovery: %d records, want %d", len(got), before+1)
	}
	return nil
}

// replayed claims a shard and returns its records.
func replayed(w *WAL, shard journal.Shard) (journal.Claim, []journal.Record, error) {
	c, records, err := journal.ClaimOne(ctx, w, shard)
	if err != nil {
		return c, nil, fmt.Errorf("claim shard %d: %w", shard, err)
	}
	var got []journal.Record
	for rec, err := range records {
		if err != nil {
			return c, nil, fmt.Errorf("replay shard %d: %w", shard, err)
		}
		got = append(got, journal.Record{At: rec.At, Payload: slices.Clone(rec.Payload), Lost: rec.Lost})
	}
	return c, got, nil
}

// replayedAll claims the first n shards and returns the records of each.
func replayedAll(w *WAL, n int) ([]journal.Claim, [][]journal.Record, error) {
	claims, records, err := w.Claim(ctx, numbersBelow(n)...)
	if err != nil {
		return nil, nil, fmt.Errorf("claim %d shards: %w", n, err)
	}
	got := make([][]journal.Record, n)
	for rec, err := range records {
		if err != nil {
			return nil, nil, fmt.Errorf("replay: %w", err)
		}
		got[rec.Shard] = append(got[rec.Shard], journal.Record{At: rec.At, Payload: slices.Clone(rec.Payload)})
	}
	return claims, got, nil
}

// TestCrashWhileSegmentsChangeSize cuts the power before the calls with which a
// large group gets its place, and with which an idle store gives space back.
func TestCrashWhileSegmentsChangeSize(t *testing.T) {
	t.Parallel()
	for what, size := range map[string]int64{"enlarged and merged": 48 << 20, "given back": 1 << 40} {
		t.Run(what, func(t *testing.T) {
			mem := vfs.NewMem()
			mem.SetSize(size)
			fault := vfs.NewFault(mem)
			w, err := Open(fault, Options{SegmentSize: 16 << 20})
			if err != nil {
				t.Fatal(err)
			}
			c, _ := claim(t, w, 1)
			commit(t, w)
			appended, durable, points, calls := 1, 1, 0, 0
			from := appendOne(t, w, c, "first")
			commit(t, w)
			crash := func(op vfs.Op, _ string) error {
				if !changes(op) || op == vfs.OpSync || t.Failed() {
					return nil
				}
				if calls++; calls%resizes != 0 {
					return nil
				}
				for range 2 { // of the four ways, in turn
					points++
					disk := mem.CrashClone(uint64(points))
					disk.SetSize(1 << 41)
					if _, err := repair.Verify(disk); err != nil {
						t.Errorf("crash %d before %s: %v", points, op, err)
					}
					w, err := Open(disk, Options{})
					if err != nil {
						t.Errorf("crash %d before %s: %v", points, op, err)
						continue
					}
					if _, got, err := replayed(w, 1); err != nil || len(got) < durable || len(got) > appended {
						t.Errorf("crash %d before %s: %d records, %v, want %d to %d", points, op, len(got), err, durable, appended)
					}
					if err := w.Close(); err != nil {
						t.Error(err)
					}
				}
				return nil
			}
			grow := func(n int) {
				t.Helper()
				appended++
				if from, err = keepUp(w, c, string(make([]byte, n))); err != nil {
					t.Fatalf("append %d bytes: %v, %+v", n, err, w.Stats())
				}
			}
			if size < 1<<40 {
				fault.Before(crash)
				grow(5 << 20)
				commit(t, w)
				durable = appended
				mem.SetOthers(1 << 40)
				grow(3 << 20)
			} else {
				for range 100 {
					grow(1 << 20)
					commit(t, w)
				}
				fault.Before(nil)
				appended, durable = 1, 1
				if err := w.Truncate(ctx, c, journal.Retain{From: from}); err != nil {
					t.Fatal(err)
				}
				commit(t, w)
				fault.Before(crash)
				before := w.Stats()
				if err := w.trim(); err != nil {
					t.Fatal(err)
				}
				if got := w.Stats(); got.Ready >= before.Ready {
					t.Fatalf("%+v: nothing was given back", got)
				}
				fault.Before(func(op vfs.Op, name string) error {
					if op == vfs.OpWrite {
						return nil // zeros, again and again
					}
					return crash(op, name)
				})
			}
			commit(t, w)
			fault.Before(nil)
			wantCounted(t, w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d crash points", points)
		})
	}
}
