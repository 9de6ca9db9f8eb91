// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/vfs"
)

// runInBackground runs w until the test ends, or stop is called, and fails the
// test if it ended for another reason.
func runInBackground(t *testing.T, w *WAL) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// TestManyAppenders has 512 goroutines append over 64 shards, each of which
// waits until its record is durable, while the owners truncate and others read.
func TestManyAppenders(t *testing.T) {
	const appendersCount, rounds, shards = 512, 20, 64
	disk := vfs.NewMem()
	w, err := Open(disk, Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	stop := runInBackground(t, w)

	type owned struct {
		mu sync.Mutex // a claim is used from one goroutine at a time
		c  journal.Claim
		l  *latch
	}
	owners := make([]*owned, shards)
	for i := range owners {
		c, _ := claim(t, w, journal.Shard(i))
		owners[i] = &owned{c: c, l: newLatch()}
		w.Watch(c, owners[i].l.notify)
	}
	var wg sync.WaitGroup
	for n := range appendersCount {
		wg.Go(func() {
			o := owners[n%shards]
			for round := range rounds {
				want := fmt.Sprintf("appender %d round %d %0*d", n, round, n, n)
				var at [1]journal.Position
				o.mu.Lock()
				err := w.Append(o.c, &journal.Group{Records: [][]byte{[]byte(want)}, At: at[:]})
				o.mu.Unlock()
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				if got, err := journal.ReadOne(ctx, w, at[0], nil); err != nil || string(got) != want {
					t.Errorf("read before durable: %.20q, %v", got, err)
				}
				o.l.wait(at[0])
				if got, err := journal.ReadOne(ctx, w, at[0], nil); err != nil || string(got) != want {
					t.Errorf("read when durable: %.20q, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	stop()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := repair.Verify(disk)
	if err != nil || r.Records != appendersCount*rounds {
		t.Fatalf("verify: %d records, %v, want %d", r.Records, err, appendersCount*rounds)
	}
	t.Logf("%d records in %d batches", r.Records, r.Batches)
}

// TestReadWhileFreed reads records all the time while their segments are freed
// and written over. Each read finds the right bytes, or that they were freed.
func TestReadWhileFreed(t *testing.T) {
	w := open(t, vfs.NewMem())
	runInBackground(t, w)
	c, _ := claim(t, w, 1)
	var newest atomic.Uint64
	done := make(chan struct{})
	payload := func(at journal.Position) string { return fmt.Sprint("record behind ", at) }
	var known sync.Map // position to payload
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				known.Range(func(at, want any) bool {
					got, err := journal.ReadOne(ctx, w, at.(journal.Position), nil)
					if err != nil && !errors.Is(err, journal.ErrFreed) || err == nil && string(got) != want {
						t.Errorf("read at %d: %.30q, %v, want %q or %v", at, got, err, want, journal.ErrFreed)
						return false
					}
					if errors.Is(err, journal.ErrFreed) {
						known.Delete(at)
					}
					return true
				})
			}
		})
	}
	for i := range 4000 {
		want := payload(journal.Position(newest.Load()))
		at := appendOne(t, w, c, want)
		newest.Store(uint64(at))
		known.Store(at, want)
		if i%50 == 49 {
			if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
				t.Errorf("truncate: %v", err)
			}
		}
	}
	close(done)
	wg.Wait()
}

func TestRunCommitsWhatIsLeftWhenItEnds(t *testing.T) {
	disk := vfs.NewMem()
	w := open(t, disk)
	stop := runInBackground(t, w)
	c, _ := claim(t, w, 1)
	for i := range 100 {
		appendOne(t, w, c, numbered(i))
	}
	stop()
	if _, got := claim(t, open(t, disk.CrashClone(0)), 1); len(got) != 100 {
		t.Fatalf("%d records, want 100", len(got))
	}
}

func TestRunEndsWhenTheDiskFails(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	commit(t, w)
	var told atomic.Pointer[journal.Status]
	w.Watch(c, func(s journal.Status) { told.Store(&s) })
	done := make(chan error, 1)
	go func() { done <- w.Run(t.Context()) }() // waited for below
	fault.FailNth(vfs.OpSync, 1, errIO)
	appendOne(t, w, c, "too late")
	if err := <-done; !errors.Is(err, journal.ErrFailed) || !errors.Is(err, errIO) {
		t.Errorf("run: %v, want %v", err, journal.ErrFailed)
	}
	if s := told.Load(); s == nil || !errors.Is(s.Err, journal.ErrFailed) {
		t.Errorf("watcher got %+v, want %v", s, journal.ErrFailed)
	}
}

// TestFullDiskIsTriedAgain shows that an idle journal notices by itself
// that there is space again.
func TestFullDiskIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfs.NewFault(vfs.NewMem())
		w := open(t, fault)
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var status journal.Status // written by Run, read when it sleeps
		w.Watch(c, func(s journal.Status) { status = s })
		synctest.Wait()
		fault.SetFull()
		fillUp(t, w, c)
		synctest.Wait()
		if !status.Full {
			t.Fatalf("status %+v, want full", status)
		}
		fault.ClearFull()
		time.Sleep(2 * retryFull)
		synctest.Wait()
		if status.Full {
			t.Fatalf("status %+v, want no longer full", status)
		}
		stop()
	})
}

func TestClosedJournalSaysSo(t *testing.T) {
	w := open(t, vfs.NewMem())
	c, _ := claim(t, w, 1)
	at := appendOne(t, w, c, "one")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, claimErr := journal.ClaimOne(ctx, w, 1)
	_, readErr := journal.ReadOne(ctx, w, at, nil)
	for name, err := range map[string]error{
		"append":   w.Append(c, &journal.Group{Records: [][]byte{nil}, At: make([]journal.Position, 1)}),
		"claim":    claimErr,
		"read":     readErr,
		"truncate": w.Truncate(ctx, c, journal.Retain{From: at}),
		"commit":   w.Commit(),
		"close":    w.Close(),
	} {
		if !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, journal.ErrClosed)
		}
	}
}
