// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
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
		k := r.attach(id, Main, queue.TakeOptions{})
		k.c.SetDeliveryLimit(10)
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
	if r.s.Snapshots() == 0 {
		t.Fatal("no snapshot was taken; the test shows nothing")
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(10_000)
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
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(2990)
	r.settle()
	for some := range slices.Chunk(k.got, 100) {
		k.settle(Complete, some...)
	}
	r.settle()
	for i := range 200 { // a little life lets the shard tidy up
		r.send(id, 9, fmt.Sprint(i))
		k.c.SetDeliveryLimit(uint64(2991 + i))
		r.settle()
		k.settle(Complete, k.got[len(k.got)-1])
		r.settle()
	}
	if small := r.size(); small > big/3 {
		t.Fatalf("%d bytes with 3,000 messages, %d with ten", big, small)
	}
	r.crash(4)
	k = r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(100)
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

func TestTruncationKeepsBodiesWhoseSettlementIsNotDurable(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 17, SnapshotStep: 1 << 20})
	id := r.define("q", queue.Config{LockFor: time.Hour})
	big := strings.Repeat("x", 6000)
	for range 10 { // most of a block, so that nobody moves them
		r.send(id, 9, big)
	}
	r.settle()
	old := r.attach(id, Main, queue.TakeOptions{})
	old.c.SetDeliveryLimit(10)
	r.settle()
	if len(old.got) != 10 {
		t.Fatalf("%d messages taken, want 10", len(old.got))
	}
	before := r.s.Snapshots()
	for r.s.Snapshots() == before || r.s.view().Snapshotting {
		r.send(id, 1, big)
		r.step()
	}

	// The end of the snapshot is written. The messages are settled, which gets
	// into memory, but not to the disk before the crash.
	old.silently(old.got...)
	r.step()
	for range 10 { // one batch at a time
		if err := r.wal.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	r.step()
	r.work()
	r.step() // takes the journal's answer
	if r.s.view().Snapshotting || r.s.view().Truncating {
		t.Fatal("the snapshot's end is not durable: the test tests nothing")
	}
	r.crash(1)
	k := r.attach(id, Main, queue.TakeOptions{MinLevel: 9})
	k.c.SetDeliveryLimit(10)
	r.settle()
	for _, body := range k.bodies() {
		if body != big {
			t.Fatalf("body of %d bytes, want %d", len(body), len(big))
		}
	}
}

// A sender must not wait behind a whole snapshot.
func TestSnapshotHasOneStepOnItsWayAtATime(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 20, SnapshotStep: 100})
	id := r.define("orders", minute)
	for i := range 3000 {
		r.send(id, 4, fmt.Sprintf("%0400d", i))
		if i%100 == 0 {
			r.step()
			r.sync()
		}
		if r.s.view().Snapshotting {
			break
		}
	}
	if !r.s.view().Snapshotting {
		t.Fatal("no snapshot began; the test shows nothing")
	}
	r.step()
	before := r.s.view().Tail
	for range 50 {
		r.step()
	}
	if r.s.view().Tail != before {
		t.Fatalf("the snapshot went on by %d bytes before its last step was durable", r.s.view().Tail-before)
	}
	for range 10 { // whatever still waited before it, and steps that write nothing
		r.sync()
		r.step()
	}
	if r.s.view().Tail == before {
		t.Fatal("the snapshot did not go on when its last step was durable")
	}
}

// A shard with nothing to do must not keep the journal from freeing what another
// is done with.
func TestIdleShardDoesNotHoldTheJournalBack(t *testing.T) {
	r := newRig(t, eager)
	idle, err := Open(context.Background(), r.wal, 1, eager)
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Define(Definition{Name: "quiet"}, map[SubQueue]queue.Config{Main: minute}, func(ID, error) {}); err != nil {
		t.Fatal(err)
	}
	id := r.define("orders", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	for i := range 5000 {
		r.send(id, 4, fmt.Sprintf("%0200d", i))
		k.c.SetDeliveryLimit(uint64(i + 1))
		r.settle()
		k.settle(Complete, k.got[i])
		idle.Step(r.now)
	}
	r.settle()
	idle.Step(r.now)
	if size := r.size(); size > 20*(1<<16) {
		t.Fatalf("%d bytes in the store, and nothing in its queues", size)
	}
}

// Consumers that drain a full disk free space for senders.
func TestFullDiskHasSpaceAgainWhenItsMessagesAreRemoved(t *testing.T) {
	disk := vfs.NewFault(vfs.NewMem())
	w, err := wal.Open(disk, wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), w, 0, Options{SnapshotAfter: 1 << 18, Go: func(_ journal.Shard, work func()) { work() }})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, wal: w, s: s, opts: Options{}, now: time.Unix(1_700_000_000, 0)}
	id := r.define("orders", minute)
	disk.SetFree(1 << 20)
	var refused bool
	try := func() (err error) {
		if perr := r.s.Send(&Send{
			Bodies: []*message.Message{text(strings.Repeat("x", 1000))},
			Copies: []Copy{{ID: id}},
			Done:   func(_ []queue.SeqNo, e error) { err = e },
		}); perr != nil {
			t.Fatal(perr)
		}
		r.settle()
		return err
	}
	sent := 0
	for ; sent < 5000 && !refused; sent++ {
		refused = errors.Is(try(), ErrDiskFull)
	}
	if !refused {
		t.Fatal("the disk never was full; the test shows nothing")
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(uint64(sent))
	r.settle()
	for some := range slices.Chunk(k.got, 50) {
		k.settle(Complete, some...)
		r.settle()
	}
	for range 10 {
		r.settle()
	}
	if err := try(); err != nil {
		t.Fatalf("after %d messages were drained: %v", sent-1, err)
	}
}
