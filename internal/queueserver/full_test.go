// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// fillDisk sends until the disk is full and returns how many were stored.
func (r *rig) fillDisk(id ID, levels int, size int) (stored int) {
	r.t.Helper()
	full := false
	for i := 0; !full; i++ {
		if i > 1_000_000 {
			r.t.Fatal("the disk is never full")
		}
		err := r.s.Send(&Send{
			Bodies: []*message.Message{text(fmt.Sprintf("%d %s", i, strings.Repeat("x", size)))},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Level: queue.Level(i % levels)}}},
			Done: func(_ []queue.SeqNo, err error) {
				switch {
				case err == nil:
					stored++
				case errors.Is(err, ErrDiskFull):
					full = true
				default:
					r.t.Fatalf("send: %v", err)
				}
			},
		})
		if err != nil {
			r.t.Fatal(err)
		}
		if i%20 == 0 || r.s.tx.Full() {
			r.settle()
		}
	}
	r.settle()
	return stored
}

// A7: whatever waits when the disk is full, and in whatever order it is consumed,
// one by one or after many failures: what is reserved is enough to consume all of
// it, with crashes on the way, and then senders are admitted again.
func TestFullDiskIsDrained(t *testing.T) {
	for i, tt := range []struct {
		name             string
		levels, size     int
		failures, atOnce int
	}{
		{name: "oldest first", levels: 1, size: 1000, atOnce: 20},
		{name: "small bodies", levels: 1, size: 30, atOnce: 20},
		{name: "one by one", levels: 1, size: 300, atOnce: 1},
		{name: "small bodies, one by one", levels: 1, size: 30, atOnce: 1},
		{name: "by level", levels: 10, size: 1000, atOnce: 20},
		{name: "by level, one by one", levels: 10, size: 300, atOnce: 1},
		{name: "after many failures", levels: 1, size: 1000, atOnce: 20, failures: 10},
	} {
		if i%fewerLayouts != fewerLayouts/2 {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Options{SnapshotAfter: 256 << 10, CacheBytes: 1})
			r.disk.SetSize(4 << 20)
			id := r.define("q", minute)
			stored := r.fillDisk(id, tt.levels, tt.size)
			snapshots := r.s.Snapshots()
			r.disk.SetOthers(1 << 40) // and not a byte more is to be had

			k := r.attach(id, Main, queue.TakeOptions{})
			fail := func(ds []Delivery) {
				for range tt.failures {
					k.settle(Abandon, ds...)
					k.got = nil
					k.c.SetDeliveryLimit(k.c.deliveredCount + uint64(len(ds)))
					r.settle()
					ds = k.got
				}
				k.settle(Complete, ds...)
			}
			done, life := 0, 0
			for done < stored {
				k.got = nil
				k.c.SetDeliveryLimit(k.c.deliveredCount + uint64(min(tt.atOnce, stored-done)))
				r.settle()
				if r.s.Stuck() || len(k.got) == 0 {
					t.Fatalf("%d of %d consumed, snapshot %d after %d: stuck %v, %d deliveries, %+v, %+v", done, stored,
						r.s.Snapshots(), snapshots, r.s.Stuck(), len(k.got), r.wal.Stats(), r.s.view())
				}
				done += len(k.got)
				fail(k.got)
				r.settle()
				if done*5/stored > life {
					life++
					r.crash(uint64(life))
					k = r.attach(id, Main, queue.TakeOptions{})
				}
			}
			r.settle()
			if r.s.tx.Full() {
				t.Fatalf("all is consumed, and the disk is full: %+v", r.wal.Stats())
			}
			if acked := r.send(id, 4, "admitted again"); acked == nil {
				t.Fatal("not admitted")
			}
			r.settle()
			t.Logf("%d messages, %d snapshots, of them %d on the full disk", stored, r.s.Snapshots(), r.s.Snapshots()-snapshots)
		})
	}
}

// A7: a snapshot that is under way when the disk becomes full, and would free
// nothing, does not take the reserve.
func TestFutileSnapshotIsAbandoned(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 256 << 10, SnapshotStep: 200, CacheBytes: 1})
	r.disk.SetSize(4 << 20)
	id := r.define("q", minute)
	r.fillDisk(id, 1, 100)
	r.s.manual().BeginSnapshot() // as if it had begun just before
	for range 5 {
		r.step()
		r.sync()
	}
	if r.s.view().Snapshotting {
		t.Fatal("the snapshot goes on")
	}
	before, number := r.wal.Stats().Available, r.s.Snapshots()
	if before < r.wal.Stats().Reserved*3/4 {
		t.Errorf("%+v: the reserve is used up", r.wal.Stats())
	}
	for range 100 {
		r.now = r.now.Add(quietAfter)
		r.settle()
	}
	if got := r.wal.Stats().Available; got < before-before/16 || r.s.Snapshots() > number {
		t.Errorf("%d of %d bytes are left after a rest, with %d snapshots", got, before, r.s.Snapshots()-number)
	}
	r.crash(3)
	if got := r.s.Check(); got != nil {
		t.Error(got)
	}
}
