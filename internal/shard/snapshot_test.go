// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/queue"
)

// Small numbers make snapshots frequent and their steps many.
var eager = Options{SnapshotAfter: 4 << 10, SnapshotStep: 7, CacheBytes: 2 << 10}

func TestSnapshotsKeepEverythingThroughCrashes(t *testing.T) {
	r := newRig(t, eager)
	id := r.define("orders", minute)
	var want []string
	for round := range 40 {
		for i := range 20 {
			body := fmt.Sprintf("%03d-%02d-%0100d", round, i, i)
			r.send(id, 4, body)
			want = append(want, body)
			r.step()
		}
		k := r.attach(id, Main, queue.Want{})
		k.c.Allow(10)
		r.settle()
		if got := k.bodies(); !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("round %d: got %q, want %q", round, got, want[:len(got)])
		}
		k.settle(Complete, k.got...)
		want = want[len(k.got):]
		k.c.Detach()
		r.settle()
		if round%5 == 4 {
			r.crash(uint64(round))
		}
	}
	if r.s.snapshot.number == 0 {
		t.Fatal("no snapshot was taken; the test shows nothing")
	}
	k := r.attach(id, Main, queue.Want{})
	k.c.Allow(10_000)
	r.settle()
	if got := k.bodies(); !slices.Equal(got, want) {
		t.Fatalf("at the end: got %d messages, want %d", len(got), len(want))
	}
}

func TestStoreIsSmallAgainWhenItsMessagesAreGone(t *testing.T) {
	r := newRig(t, eager)
	id := r.define("orders", minute)
	for i := range 3000 {
		r.send(id, 4, fmt.Sprintf("%0200d", i))
		if i%100 == 0 {
			r.settle()
		}
	}
	r.settle()
	big := r.size()
	k := r.attach(id, Main, queue.Want{})
	k.c.Allow(2990)
	r.settle()
	for some := range slices.Chunk(k.got, 100) {
		k.settle(Complete, some...)
	}
	r.settle()
	for i := range 200 { // a little life lets the shard tidy up
		r.send(id, 9, fmt.Sprint(i))
		k.c.Allow(uint64(2991 + i))
		r.settle()
		k.settle(Complete, k.got[len(k.got)-1])
		r.settle()
	}
	if small := r.size(); small > big/3 {
		t.Fatalf("%d bytes with 3,000 messages, %d with ten", big, small)
	}
	r.crash(4)
	k = r.attach(id, Main, queue.Want{})
	k.c.Allow(100)
	r.settle()
	if got := len(k.bodies()); got != 10 {
		t.Fatalf("%d messages left, want 10", got)
	}
}

// size is the number of bytes in the store's files.
func (r *rig) size() (n int64) {
	r.t.Helper()
	names, err := r.disk.List(".")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		f, err := r.disk.Open(name)
		if err != nil {
			continue // a directory
		}
		size, err := f.Size()
		if err != nil {
			r.t.Fatal(err)
		}
		n += size
		if err := f.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	return n
}
