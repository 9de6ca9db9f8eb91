// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// fleet is several shards on one journal, driven by hand.
type fleet struct {
	t      testing.TB
	disk   *vfs.Mem
	wal    *wal.WAL
	opts   Options
	shards []*rig
	now    time.Time
}

func newFleet(t testing.TB, n int, opts Options) *fleet {
	t.Helper()
	f := &fleet{t: t, disk: vfs.NewMem(), opts: opts, now: time.Unix(1_700_000_000, 0)}
	f.opts.Go = func(_ journal.Shard, work func()) { work() }
	f.open(n)
	return f
}

func (f *fleet) open(n int) {
	f.t.Helper()
	w, err := wal.Open(f.disk, wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		f.t.Fatal(err)
	}
	numbers := make([]journal.Shard, n)
	for i := range numbers {
		numbers[i] = journal.Shard(i)
	}
	shards, err := OpenAll(context.Background(), w, numbers, f.opts)
	if err != nil {
		f.t.Fatal(err)
	}
	f.wal, f.shards = w, nil
	for _, s := range shards {
		f.shards = append(f.shards, &rig{t: f.t, disk: f.disk, wal: w, s: s, opts: f.opts, now: f.now})
	}
}

// crash loses what was not durable and comes back.
func (f *fleet) crash() {
	f.t.Helper()
	f.disk = f.disk.CrashClone(1)
	f.open(len(f.shards))
}

// settle steps every shard until all is durable and no snapshot is under way.
func (f *fleet) settle() {
	f.t.Helper()
	for range 10_000 {
		rest := true
		for _, r := range f.shards {
			r.now = f.now
			r.step()
			rest = rest && !r.s.view().Snapshotting && !r.s.view().Truncating && r.s.view().Waiting == 0
		}
		r := f.shards[0]
		r.sync()
		if rest {
			return
		}
	}
	f.t.Fatal("the shards do not come to rest")
}

// idle lets time pass with nothing to do, until no shard has anything left to do.
func (f *fleet) idle() {
	f.t.Helper()
	for range 200 {
		f.now = f.now.Add(time.Second)
		before := f.wal.Stats().Records
		f.settle()
		if f.wal.Stats().Records == before {
			return
		}
	}
	f.t.Fatal("an idle broker goes on writing")
}

// through sends messages to a queue and has them consumed.
func (f *fleet) through(r *rig, id ID, n int) {
	f.t.Helper()
	k := r.attach(id, Main, queue.TakeOptions{})
	for i := range n {
		r.send(id, 4, fmt.Sprintf("%0200d", i))
		k.c.SetDeliveryLimit(uint64(i + 1))
		f.settle()
		k.settle(Complete, k.got[i])
	}
	if err := k.c.Detach(); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
}

// A1: a drained store is small, however its entities are spread over the shards.
func TestDrainedStoreIsSmallInEveryLayout(t *testing.T) {
	for _, tt := range []struct {
		name   string
		shards int
		play   func(f *fleet)
	}{
		{"no entity", 4, func(*fleet) {}},
		{"one entity, two shards", 2, func(f *fleet) {
			r := f.shards[0]
			f.through(r, r.define("q", minute), 4000/fewerBodies)
		}},
		{"one entity on the last of eight shards", 8, func(f *fleet) {
			r := f.shards[7]
			f.through(r, r.define("q", minute), 4000/fewerBodies)
		}},
		{"entities on some shards", 8, func(f *fleet) {
			for i, r := range f.shards[:3] {
				f.through(r, r.define(fmt.Sprint(i), minute), 1500/fewerBodies)
			}
		}},
		{"the last entity of a shard was deleted", 3, func(f *fleet) {
			a, b := f.shards[0], f.shards[1]
			gone := a.define("gone", minute)
			f.through(a, gone, 100)
			if err := a.s.Drop([]ID{gone}, func(error) {}); err != nil {
				f.t.Fatal(err)
			}
			f.settle()
			f.through(b, b.define("q", minute), 4000/fewerBodies)
		}},
		{"a restart in between", 4, func(f *fleet) {
			r := f.shards[1]
			id := r.define("q", minute)
			f.through(r, id, 2000/fewerBodies)
			f.crash()
			f.through(f.shards[1], id, 2000/fewerBodies)
			f.crash()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFleet(t, tt.shards, Options{SnapshotAfter: 64 << 10})
			tt.play(f)
			f.idle()
			if size := f.shards[0].size(); size > 10*(1<<16) {
				t.Errorf("%d KiB on disk and nothing in the queues", size>>10)
			}
			f.crash()
			f.idle()
			if size := f.shards[0].size(); size > 10*(1<<16) {
				t.Errorf("%d KiB on disk after a restart", size>>10)
			}
		})
	}
}

// A2: snapshots of one shard are no reason for another's. An idle broker comes to
// rest whatever it holds, and what snapshots write is bounded by what clients do.
func TestSnapshotsDoNotTriggerEachOther(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 64} {
		t.Run(fmt.Sprint(n, " shards"), func(t *testing.T) {
			f := newFleet(t, n, Options{SnapshotAfter: 32 << 10})
			for _, r := range f.shards {
				id := r.define("q", minute)
				for i := range 3000 / n {
					r.send(id, 4, fmt.Sprint(i))
				}
			}
			f.settle()
			f.idle()
			var own, snapshots uint64
			for _, r := range f.shards {
				own += r.s.view().Own
				snapshots += r.s.view().ForSnapshots
			}
			if snapshots > 2*own {
				t.Errorf("clients made the broker write %d bytes, snapshots %d", own, snapshots)
			}
		})
	}
}

// A shard that has nothing to do asks for no step: once the log has been quiet for a
// while it looks, perhaps takes a snapshot, and is at rest.
func TestIdleShardComesToRest(t *testing.T) {
	f := newFleet(t, 2, Options{SnapshotAfter: 64 << 10})
	r := f.shards[0]
	f.through(r, r.define("q", minute), 60)
	if r.s.Snapshots() > 0 {
		t.Fatal("there was a snapshot before the log was quiet; the test shows nothing")
	}
	var slow []func() // the journal takes its time to truncate
	r.s.manual().SetGo(func(_ journal.Shard, work func()) { slow = append(slow, work) })
	for steps := 0; ; steps++ {
		at, ok := r.s.NextDeadline()
		if !ok && len(slow) == 0 && !r.s.view().Snapshotting && !r.s.view().Truncating {
			break
		}
		if steps == 50 {
			t.Fatal("an idle shard goes on asking for steps")
		}
		if r.now = r.now.Add(2 * quietAfter); ok {
			r.now = later(r.now, at)
		}
		for _, work := range slow {
			work()
		}
		slow = nil
		r.step()
		r.sync()
	}
	if r.s.Snapshots() == 0 {
		t.Fatal("no snapshot was taken; the test shows nothing")
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
