// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

const segmentSize = 1 << 16

// rig drives one hub by hand: nothing happens between its calls.
type rig struct {
	t          testing.TB
	disk       *vfs.Mem
	fs         vfs.FS // what the journal sees of it
	set        Settings
	opts       Options
	wrap       func(journal.Journal) journal.Journal // around the journal; nil is none
	segment    uint64                                // bytes
	wal        *wal.WAL
	h          *Hub
	now        time.Time
	background []func()
	damages    []Damage
}

func newRig(t testing.TB, set Settings) *rig {
	t.Helper()
	return newRigOf(t, set, segmentSize)
}

// newRigOf is newRig with segments of that many bytes.
func newRigOf(t testing.TB, set Settings, segment uint64) *rig {
	t.Helper()
	r := &rig{t: t, disk: vfs.NewMem(), set: set, segment: segment, now: time.UnixMilli(1_700_000_000_000)}
	r.fs = r.disk
	r.opts.Go = func(_ journal.Shard, f func()) { r.background = append(r.background, f) }
	r.opts.OnDamage = func(d Damage) { r.damages = append(r.damages, d) }
	r.open()
	r.settle()
	return r
}

func (r *rig) open() {
	r.t.Helper()
	w, err := wal.Open(r.fs, wal.Options{SegmentSize: r.segment})
	if err != nil {
		r.t.Fatalf("open the journal: %v", err)
	}
	r.wal, r.background = w, nil
	var j journal.Journal = w
	if r.wrap != nil {
		j = r.wrap(w)
	}
	r.h, err = Open(r.t.Context(), j, 0, r.set, r.opts)
	if err != nil {
		r.t.Fatalf("open the hub: %v", err)
	}
	r.check()
}

// crash loses what was not durable and comes back.
func (r *rig) crash(seed uint64) {
	r.t.Helper()
	r.disk = r.disk.CrashClone(seed)
	r.fs = r.disk
	r.open()
}

func (r *rig) check() {
	r.t.Helper()
	if err := r.h.Check(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) step() {
	r.t.Helper()
	r.h.Step(r.now)
	if err := r.h.Failed(); err != nil {
		r.t.Fatalf("engine failed: %v", err)
	}
}

func (r *rig) work() {
	for len(r.background) > 0 {
		f := r.background[0]
		r.background = r.background[1:]
		f()
	}
}

func (r *rig) commit() {
	r.t.Helper()
	for range 3 {
		if err := r.wal.Commit(); err != nil {
			r.t.Fatalf("commit: %v", err)
		}
	}
}

// settle works until everything is durable and no snapshot is under way.
func (r *rig) settle() {
	r.t.Helper()
	for n := range 1000 {
		r.step()
		r.work()
		r.commit()
		if v := r.h.Engine.Manual().View(); n > 2 && !v.Snapshotting && !v.Truncating {
			break
		}
	}
	r.step()
}

// body is a batch of size bytes that says what it is.
func body(partition int, n int64, size int) []byte {
	b := fmt.Appendf(nil, "partition %d batch %d ", partition, n)
	for len(b) < size {
		b = append(b, byte(n))
	}
	return b
}

// append appends a batch and waits for it.
func (r *rig) append(partition, count, size int) stream.SeqNo {
	r.t.Helper()
	seq, err := r.try(&Append{Partition: partition, Count: count, Raw: body(partition, int64(r.h.partitions[partition].m.Next()), size)})
	if err != nil {
		r.t.Fatalf("append: %v", err)
	}
	return seq
}

// try appends a batch and returns what comes of it.
func (r *rig) try(a *Append) (seq stream.SeqNo, err error) {
	r.t.Helper()
	calls := 0
	a.Done = func(s stream.SeqNo, e error) { seq, err, calls = s, e, calls+1 }
	r.h.Append(a)
	for range 100 {
		if calls > 0 {
			break
		}
		r.step()
		r.work()
		r.commit()
	}
	r.step()
	if calls != 1 {
		r.t.Fatalf("Done was called %d times", calls)
	}
	return seq, err
}

// run has fn run on a goroutine while the hub works.
func run[T any](r *rig, fn func() (T, error)) (T, error) {
	r.t.Helper()
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() { // waited for below
		v, err := fn()
		done <- result{v, err}
	}()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case x := <-done:
			return x.v, x.err
		case <-r.h.Engine.Manual().Wake():
			r.step()
			r.work()
			r.commit()
			r.step()
		case <-deadline:
			r.t.Fatal("no answer")
		}
	}
}

func (r *rig) reader(o ReaderOptions) *Reader {
	r.t.Helper()
	x, err := run(r, func() (*Reader, error) { return r.h.OpenReader(r.t.Context(), o) })
	if err != nil {
		r.t.Fatalf("open a reader: %v", err)
	}
	return x
}

// next returns what a reader gets now; nothing if it would wait.
func (r *rig) next(x *Reader, maxBytes int) ([]Batch, error) {
	r.t.Helper()
	for range 100 {
		batches, ready, err := x.Poll(r.t.Context(), maxBytes)
		if ready || err != nil {
			return batches, err
		}
		if r.h.Posted() == 0 {
			return nil, nil
		}
		r.step()
	}
	r.t.Fatal("a reader does not come to an end")
	return nil, nil
}

// drain reads all that there is and checks it.
func (r *rig) drain(x *Reader, from stream.SeqNo) stream.SeqNo {
	r.t.Helper()
	for {
		batches, err := r.next(x, 1<<20)
		if err != nil {
			r.t.Fatalf("next: %v", err)
		}
		if len(batches) == 0 {
			return from
		}
		for _, b := range batches {
			if got := b.First + stream.SeqNo(b.Skip); got != from {
				r.t.Fatalf("event %d, want %d", got, from)
			}
			if want := body(x.opts.Partition, int64(b.First), len(b.Raw)); string(b.Raw) != string(want) {
				r.t.Fatalf("batch of event %d is %q", b.First, b.Raw[:min(len(b.Raw), 40)])
			}
			from = b.First + stream.SeqNo(b.Count)
		}
	}
}
