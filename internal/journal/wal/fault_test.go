// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/vfs"
)

var errIO = errors.New("input/output error")

// errandResult is what an errand learned before it ended.
type errandResult struct {
	acknowledged []string // in order, from the last truncation on
	err          error
	w            *WAL
}

// errand does a bit of everything, until the first error.
func errand(fsys vfs.FS) (r errandResult) {
	w, err := Open(fsys, Options{SegmentSize: 8 << 10})
	if err != nil {
		return errandResult{err: err}
	}
	r.w = w
	c, _, err := journal.ClaimOne(ctx, w, 1)
	if err != nil {
		r.err = err
		return r
	}
	type appended struct {
		at      journal.Position
		payload string
	}
	var all []appended
	acknowledge := func(s journal.Status) {
		for len(all) > 0 && all[0].at <= s.Durable {
			r.acknowledged, all = append(r.acknowledged, all[0].payload), all[1:]
		}
	}
	w.Watch(c, acknowledge)
	at := make([]journal.Position, 1)
	for i := range 60 {
		p := fmt.Sprintf("%d %0600d", i, i)
		if r.err = w.Append(c, &journal.Group{Records: [][]byte{[]byte(p)}, At: at}); r.err != nil {
			return r
		}
		all = append(all, appended{at[0], p})
		if i%3 == 0 {
			if r.err = w.Commit(); r.err != nil {
				return r
			}
		}
		if i%20 == 19 {
			r.acknowledged = nil // all but the last record may go, from here on
			if r.err = w.Truncate(ctx, c, journal.Retain{From: at[0]}); r.err != nil {
				return r
			}
			r.acknowledged, all = []string{p}, nil // Truncate is durable
		}
		if _, r.err = journal.ReadOne(ctx, w, at[0], nil); r.err != nil {
			return r
		}
	}
	r.err = w.Close()
	return r
}

// TestEveryCallFailsOnce lets each single call to the disk fail in turn. The
// failure must be reported, and what was acknowledged before must be there when the
// process that met it has died.
func TestEveryCallFailsOnce(t *testing.T) {
	t.Parallel()
	calls := 0
	count := vfs.NewFault(vfs.NewMem())
	count.Before(func(vfs.Op, string) error { calls++; return nil })
	if r := errand(count); r.err != nil {
		t.Fatal(r.err)
	}
	for n := range calls {
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem)
		left, which := n, ""
		fault.Before(func(op vfs.Op, name string) error {
			if left--; left == -1 {
				which = fmt.Sprintf("call %d, %s %s", n, op, name)
				return errIO
			}
			return nil
		})
		r := errand(fault)
		if !errors.Is(r.err, errIO) {
			t.Errorf("%s: the errand ended with %v, want %v", which, r.err, errIO)
		}
		for way := range uint64(4) {
			wantAcknowledged(t, which, mem.CrashClone(way), r.acknowledged)
		}
	}
	t.Logf("%d calls", calls)
}

func wantAcknowledged(t *testing.T, which string, disk *vfs.Mem, want []string) {
	t.Helper()
	w, err := Open(disk, Options{SegmentSize: 8 << 10})
	if err != nil {
		t.Errorf("%s: recovery: %v", which, err)
		return
	}
	_, got, err := replayed(w, 1)
	if err != nil {
		t.Errorf("%s: %v", which, err)
		return
	}
	next := 0
	for _, rec := range got {
		if next < len(want) && string(rec.Payload) == want[next] {
			next++
		}
	}
	if next < len(want) {
		t.Errorf("%s: %.10q was acknowledged and is lost", which, want[next])
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		fault := vfs.NewFault(vfs.NewMem())
		w := open(t, fault)
		c, _ := claim(t, w, 1)
		commit(t, w) // the pool is full: the next write is the batch
		var told journal.Status
		w.Watch(c, func(s journal.Status) { told = s })
		at := appendOne(t, w, c, "never durable")
		fault.FailNth(op, 1, errIO)
		if err := w.Commit(); !errors.Is(err, journal.ErrFailed) || !errors.Is(err, errIO) {
			t.Errorf("%s fails: commit: %v, want %v", op, err, journal.ErrFailed)
		}
		if !errors.Is(told.Err, journal.ErrFailed) || told.Durable >= at {
			t.Errorf("%s fails: watcher got %+v", op, told)
		}
		if err := w.Append(c, &journal.Group{Records: [][]byte{nil}, At: make([]journal.Position, 1)}); !errors.Is(err, journal.ErrFailed) {
			t.Errorf("%s fails: append: %v, want %v", op, err, journal.ErrFailed)
		}
		if err := w.Commit(); !errors.Is(err, journal.ErrFailed) {
			t.Errorf("%s fails: commit again: %v, want %v", op, err, journal.ErrFailed)
		}
		if _, _, err := journal.ClaimOne(ctx, w, 1); !errors.Is(err, journal.ErrFailed) {
			t.Errorf("%s fails: claim: %v, want %v", op, err, journal.ErrFailed)
		}
	}
}

// TestFullDisk fills the disk at random points of random work. Appends go on for
// a while, then are refused and lose nothing; truncation works all the same, and
// once there is space the journal goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	told, refused := 0, 0
	for seed := range uint64(fullDisks) {
		rng := rand.New(rand.NewPCG(seed, 9))
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem)
		w, err := Open(fault, Options{SegmentSize: 8 << 10})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := claim(t, w, 1)
		commit(t, w)
		var status journal.Status
		w.Watch(c, func(s journal.Status) { status = s })
		fault.SetFree(rng.Int64N(60_000))

		var want []string
		var at [1]journal.Position
		for i := 0; ; i++ {
			p := fmt.Sprintf("%d %0*d", i, rng.IntN(900), i)
			err := w.Append(c, &journal.Group{Records: [][]byte{[]byte(p)}, At: at[:]})
			if errors.Is(err, journal.ErrFull) {
				refused++
				break
			}
			if err != nil {
				t.Fatalf("seed %d: append: %v", seed, err)
			}
			want = append(want, p)
			if rng.IntN(3) == 0 {
				commit(t, w)
			}
		}
		commit(t, w)
		if !status.Full || status.Err != nil {
			t.Fatalf("seed %d: an append was refused, and the status is %+v", seed, status)
		}
		told++
		wantAcknowledged(t, fmt.Sprint("seed ", seed), mem.CrashClone(seed), want)

		// Not a byte is free, and truncation frees some all the same.
		fault.SetFree(0)
		if err := w.Truncate(ctx, c, journal.Retain{From: at[0]}); err != nil {
			t.Fatalf("seed %d: truncate on a full disk: %v", seed, err)
		}
		commit(t, w)
		last := want[len(want)-1]
		for i := range 10 {
			p := fmt.Sprintf("again %d", i)
			appendOne(t, w, c, p)
			want = append(want, p)
		}
		commit(t, w)
		fault.SetFree(-1)
		commit(t, w)
		if status.Full {
			t.Fatalf("seed %d: there is space, and the status is %+v", seed, status)
		}
		_, got := claim(t, open(t, mem.CrashClone(seed)), 1)
		if len(got) != 11 || got[0] != last {
			t.Fatalf("seed %d: %d records, want 11", seed, len(got))
		}
		if err := w.Close(); err != nil {
			t.Fatalf("seed %d: close: %v", seed, err)
		}
	}
	t.Logf("%d disks filled, %d appends refused", told, refused)
}

func TestFullDiskClearsByItself(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	commit(t, w)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })
	fault.SetFull()
	fillUp(t, w, c)
	commit(t, w)
	if !status.Full {
		t.Fatalf("only the reserve is left, and the status is %+v", status)
	}
	fault.ClearFull()
	commit(t, w)
	if status.Full {
		t.Fatalf("there is space again, and the status is %+v", status)
	}
}

func TestGroupLargerThanTheReadySegments(t *testing.T) {
	disk := vfs.NewMem()
	w, err := Open(disk, Options{SegmentSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	commit(t, w)
	big := make([]byte, 12<<20) // the first segments have one and four megabytes
	for i := range big {
		big[i] = byte(i)
	}
	small := appendOne(t, w, c, "small")
	at := appendOne(t, w, c, string(big))
	last := appendOne(t, w, c, "last")
	commit(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = Open(disk, Options{}); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[journal.Position]string{small: "small", at: string(big), last: "last"} {
		if got, err := journal.ReadOne(ctx, w, p, nil); err != nil || string(got) != want {
			t.Errorf("at %d: %d bytes, %v, want %d", p, len(got), err, len(want))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOneProcessAtATime(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS(t.TempDir())} {
		open(t, fsys)
		if _, err := Open(fsys, Options{}); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("%s: second open: %v, want %v", name, err, vfs.ErrLocked)
		}
		if _, err := repair.Verify(fsys); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("%s: verify of a running store: %v, want %v", name, err, vfs.ErrLocked)
		}
	}
}
