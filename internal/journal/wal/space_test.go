// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// sendOne appends one record for senders.
func sendOne(w *WAL, c journal.Claim, payload string) (journal.Position, error) {
	var at [1]journal.Position
	err := w.Append(c, &journal.Group{Records: [][]byte{[]byte(payload)}, At: at[:], Use: journal.Ordinary})
	return at[0], err
}

// keepUp appends one record for upkeep.
func keepUp(w *WAL, c journal.Claim, payload string) (journal.Position, error) {
	var at [1]journal.Position
	err := w.Append(c, &journal.Group{Records: [][]byte{[]byte(payload)}, At: at[:]})
	return at[0], err
}

// fillUp sends until the disk is full, and returns how many records that took and
// where the last is.
func fillUp(t *testing.T, w *WAL, c journal.Claim) (sent int, last journal.Position) {
	t.Helper()
	for range 1_000_000 {
		at, err := sendOne(w, c, numbered(600))
		switch {
		case err == nil:
			sent, last = sent+1, at
		case errors.Is(err, journal.ErrFull):
			return sent, last
		case errors.Is(err, journal.ErrBusy):
			if !w.preallocating.Load() {
				commit(t, w)
			} else {
				synctest.Wait()
			}
		default:
			t.Fatalf("send: %v", err)
		}
	}
	t.Fatal("the disk is never full")
	return 0, 0
}

// limited returns a disk of that size and a journal of small segments on it that
// runs in no goroutine.
func limited(t *testing.T, size int64) (*vfs.Mem, *WAL) {
	t.Helper()
	disk := vfs.NewMem()
	disk.SetSize(size)
	return disk, open(t, disk)
}

// A7: a burst fills the disk. Senders are refused before the reserve is touched,
// upkeep goes on with it, its end is no failure, and all comes back by truncation.
func TestSendersLeaveTheReserve(t *testing.T) {
	const reserve = 100_000
	_, w := limited(t, 1<<20)
	c, _ := claim(t, w, 1)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })
	w.Reserve(c, journal.Reservation{Snapshots: reserve})
	commit(t, w)
	if status.Full || status.Busy {
		t.Fatalf("new: status %+v", status)
	}
	sent, _ := fillUp(t, w, c)
	commit(t, w)
	if !status.Full {
		t.Fatalf("senders are refused, and the status is %+v", status)
	}
	if got := w.Stats(); got.Available < got.Reserved || got.Reserved < reserve {
		t.Fatalf("after %d records: %+v: senders have used the reserve", sent, got)
	}

	kept := 0
	var last journal.Position
	for {
		at, err := keepUp(w, c, numbered(600))
		if errors.Is(err, journal.ErrFull) {
			break
		}
		if err != nil {
			t.Fatalf("upkeep: %v", err)
		}
		kept, last = kept+1, at
		if kept%10 == 0 {
			commit(t, w)
		}
	}
	if kept*600 < reserve {
		t.Fatalf("upkeep got %d bytes, want at least the %d it has reserved", kept*600, reserve)
	}
	commit(t, w)
	if !status.Full || status.Err != nil {
		t.Fatalf("nothing is left, and the status is %+v", status)
	}

	if err := w.Truncate(ctx, c, journal.Retain{From: last}); err != nil {
		t.Fatalf("truncate: %v", err)
	}
	commit(t, w)
	if status.Full || status.Busy {
		t.Fatalf("after truncating: status %+v, %+v", status, w.Stats())
	}
	if again, _ := fillUp(t, w, c); again < sent/2 {
		t.Fatalf("%d records were sent, and %d once everything was freed", sent, again)
	}
}

// A7: whether the disk is full is known before senders are admitted.
func TestFullIsKnownAtOnce(t *testing.T) {
	disk, w := limited(t, 1<<20)
	c, _ := claim(t, w, 1)
	commit(t, w)
	fillUp(t, w, c)
	for err := error(nil); err == nil; {
		_, err = keepUp(w, c, numbered(600))
	}
	commit(t, w)
	for way := range uint64(4) {
		w := open(t, disk.CrashClone(way))
		c, _ := claim(t, w, 1)
		if _, err := sendOne(w, c, "first"); !errors.Is(err, journal.ErrFull) {
			t.Errorf("way %d: the first send after a start: %v, want %v", way, err, journal.ErrFull)
		}
		var status []journal.Status
		w.Watch(c, func(s journal.Status) { status = append(status, s) })
		w.notifyWatchers()
		if len(status) != 1 || !status[0].Full {
			t.Errorf("way %d: the first status is %+v, want full", way, status)
		}
	}
	disk.SetSize(2 << 20)
	w = open(t, disk.CrashClone(0))
	if c, _ = claim(t, w, 1); w.Stats().Full {
		t.Errorf("the disk has grown, and is full: %+v", w.Stats())
	}
	// What an owner reserves is more than there is: known at once, too.
	w.Reserve(c, journal.Reservation{Snapshots: 10 << 20})
	if _, err := sendOne(w, c, "first"); !errors.Is(err, journal.ErrFull) || !w.Stats().Full {
		t.Errorf("send with a reserve that cannot be: %v, %+v", err, w.Stats())
	}
}

// A7: a store opens, and its shards can be claimed, on whatever a crash leaves of
// a disk that other processes fill meanwhile; and it goes on once they leave.
func TestRestartOnAFullDisk(t *testing.T) {
	t.Parallel()
	refused := 0
	for seed := range uint64(restarts) {
		rng := rand.New(rand.NewPCG(seed, 3))
		disk := vfs.NewMem()
		disk.SetSize(200<<10 + rng.Int64N(300<<10))
		var want string
		for life := range 6 {
			w, err := Open(disk, Options{SegmentSize: 16 << 10})
			if err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			c, records, err := replayed(w, 1)
			if err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			var got []string
			for _, r := range records {
				got = append(got, string(r.Payload))
			}
			if want != "" && (len(got) == 0 || got[len(got)-1] != want) {
				t.Fatalf("seed %d, life %d: the last record is lost", seed, life)
			}
			w.Reserve(c, journal.Reservation{Snapshots: rng.Uint64N(60 << 10)})
			for i := range rng.IntN(200) {
				payload := fmt.Sprintf("%d.%d.%d %0*d", seed, life, i, rng.IntN(3000), i)
				put := sendOne
				if rng.IntN(3) == 0 {
					put = keepUp
				}
				at, err := put(w, c, payload)
				switch {
				case err == nil:
					if err := w.flush(); err != nil {
						t.Fatal(err)
					}
					want = payload
				case errors.Is(err, journal.ErrFull):
					refused++
				case !errors.Is(err, journal.ErrBusy):
					t.Fatalf("seed %d, life %d: %v", seed, life, err)
				}
				switch rng.IntN(20) {
				case 0:
					disk.SetOthers(rng.Int64N(500 << 10))
				case 1:
					if err == nil && rng.IntN(3) == 0 {
						if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
							t.Fatalf("seed %d, life %d: truncate: %v", seed, life, err)
						}
					}
				default:
					commit(t, w)
				}
			}
			wantCounted(t, w)
			disk = disk.CrashClone(rng.Uint64())
			if rng.IntN(2) == 0 {
				disk.SetOthers(1 << 40) // not a byte is left
			}
		}
		disk.SetOthers(0)
		disk.SetSize(10 << 20)
		w := open(t, disk)
		c, _ := claim(t, w, 1)
		commit(t, w)
		if _, err := sendOne(w, c, "there is space"); err != nil {
			t.Fatalf("seed %d: send to a disk that has space again: %v, %+v", seed, err, w.Stats())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := repair.Verify(disk); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d appends were refused", refused)
}

// writes returns how many calls have changed the disk.
func writes(fault *vfs.Fault) (n int) {
	for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpAllocate, vfs.OpTruncate, vfs.OpSync, vfs.OpRename, vfs.OpRemove, vfs.OpSyncDir} {
		n += fault.Calls(op)
	}
	return n
}

// A7: a broker with nothing to do on a full disk writes nothing.
func TestIdleFullDiskIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.SetSize(1 << 20)
		fault := vfs.NewFault(disk)
		w := open(t, fault)
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var status journal.Status // written by Run, read when it sleeps
		w.Watch(c, func(s journal.Status) { status = s })
		w.Reserve(c, journal.Reservation{Snapshots: 200 << 10})
		synctest.Wait()
		fillUp(t, w, c)
		synctest.Wait()
		disk.SetOthers(1 << 40)
		time.Sleep(time.Minute)
		before := writes(fault)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := writes(fault) - before; got > 0 || !status.Full {
			t.Errorf("%d calls that write in an hour, status %+v", got, status)
		}
		disk.SetOthers(0)
		disk.SetSize(4 << 20)
		time.Sleep(2 * retryFull)
		synctest.Wait()
		if status.Full || status.Busy {
			t.Errorf("the disk has grown, and the status is %+v", status)
		}
		stop()
	})
}

// A7: a disk that has less than it says, as with a quota for one user, is not tried
// without limit.
func TestDiskThatHasLessThanItSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		fault := vfs.NewFault(disk)
		w := open(t, fault)
		runInBackground(t, w)
		c, _ := claim(t, w, 1)
		synctest.Wait()
		fault.Before(func(op vfs.Op, _ string) error {
			if op == vfs.OpAllocate {
				return fmt.Errorf("quota: %w", vfs.ErrNoSpace)
			}
			return nil
		})
		fillUp(t, w, c)
		time.Sleep(time.Hour)
		before := fault.Calls(vfs.OpAllocate)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := fault.Calls(vfs.OpAllocate) - before; got == 0 || got > 3600/maxSkip+1 {
			t.Errorf("tried %d times in an hour", got)
		}
		fault.Before(nil)
		time.Sleep(2 * maxSkip * retryFull)
		synctest.Wait()
		if s := w.Stats(); s.Full || s.Busy {
			t.Errorf("the quota is gone: %+v", s)
		}
	})
}

// A7: what is kept ready fits the disk, and a record larger than that has a place
// all the same.
func TestSegmentsFitTheDisk(t *testing.T) {
	t.Parallel()
	for _, size := range diskSizes {
		disk := vfs.NewMem()
		disk.SetSize(size)
		w, err := Open(disk, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := claim(t, w, 1)
		commit(t, w)
		record := string(make([]byte, 100_000))
		for sent := int64(0); sent < size/2; sent += int64(len(record)) {
			if _, err := sendOne(w, c, record); err != nil {
				t.Fatalf("disk of %d: after %d bytes: %v, %+v", size, sent, err, w.Stats())
			}
			commit(t, w)
		}
		w.mu.Lock()
		for _, s := range w.segs {
			if s.Head.Capacity > max(store.FirstCapacity, uint64(size)/segmentShare) {
				t.Errorf("disk of %d: segment %d has %d bytes", size, s.Number, s.Head.Capacity)
			}
		}
		w.mu.Unlock()
		large := string(make([]byte, size/10))
		if _, err := sendOne(w, c, large); err != nil {
			if !errors.Is(err, journal.ErrBusy) {
				t.Fatalf("disk of %d: send a tenth of it: %v", size, err)
			}
			commit(t, w) // makes the place
			if _, err := sendOne(w, c, large); err != nil {
				t.Errorf("disk of %d: send a tenth of it again: %v, %+v", size, err, w.Stats())
			}
		}
		if at, err := keepUp(w, c, large); err != nil {
			t.Errorf("disk of %d: append a tenth of it for upkeep: %v", size, err)
		} else if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A sender whose group has its owner reserve much, compared with the segments, waits until that is
// there, and is admitted then: what was made for it is not taken away before it comes again.
func TestLargeReservationIsAdmitted(t *testing.T) {
	w, err := Open(vfs.NewMem(), Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	commit(t, w)
	g := &journal.Group{Records: [][]byte{[]byte("small")}, At: make([]journal.Position, 1), Use: journal.Ordinary, More: journal.Reservation{Settling: 2 << 20}}
	err = journal.ErrBusy
	for n := 0; errors.Is(err, journal.ErrBusy); n++ {
		if n == 10 {
			t.Fatalf("after %d times: %v, %+v", n, err, w.Stats())
		}
		err = w.Append(c, g)
		commit(t, w)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A group for senders that is too large for what is left is refused with journal.ErrFull,
// not refused with ErrBusy without limit; smaller ones go on.
func TestLargeGroupOnAFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetSize(64 << 20)
	w, err := Open(disk, Options{SegmentSize: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	commit(t, w)
	disk.SetOthers(1 << 40)
	large := string(make([]byte, 12<<20))
	for err = journal.ErrBusy; errors.Is(err, journal.ErrBusy); commit(t, w) {
		_, err = sendOne(w, c, large)
	}
	if !errors.Is(err, journal.ErrFull) {
		t.Fatalf("send 12 MiB: %v, want %v", err, journal.ErrFull)
	}
	if _, err := sendOne(w, c, "small"); err != nil {
		t.Fatalf("send a small one: %v, %+v", err, w.Stats())
	}
	if _, err := keepUp(w, c, large); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("append 12 MiB for upkeep: %v, want %v", err, journal.ErrFull)
	}
	if _, err := keepUp(w, c, "small"); err != nil {
		t.Fatalf("append a small one for upkeep: %v", err)
	}
	disk.SetOthers(0)
	commit(t, w)
	for i := 0; ; i++ {
		if _, err = sendOne(w, c, large); err == nil || i == 3 {
			break
		}
		commit(t, w)
	}
	if err != nil {
		t.Errorf("send 12 MiB to a disk that has space again: %v, %+v", err, w.Stats())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A large group for upkeep gets the reserve in one piece, though it lies in many.
func TestReserveIsMergedForALargeGroup(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetSize(64 << 20)
	w, err := Open(disk, Options{SegmentSize: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	w.Reserve(c, journal.Reservation{Snapshots: 16 << 20})
	commit(t, w)
	disk.SetOthers(1 << 40)
	if _, err := keepUp(w, c, string(make([]byte, 12<<20))); err != nil {
		t.Fatalf("append 12 MiB of the 16 that are reserved: %v, %+v", err, w.Stats())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = Open(disk, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, got := claim(t, w, 1); len(got) != 1 || len(got[0]) != 12<<20 {
		t.Fatalf("%d records after a restart, want one of 12 MiB", len(got))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A12: what waits for the disk is bounded, and senders never wait for it.
func TestTooMuchWaitsForTheDisk(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w, err := Open(fault, Options{SegmentSize: 1 << 20, Unsynced: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })
	commit(t, w)
	calls := 0
	fault.Before(func(vfs.Op, string) error { calls++; return nil })
	sent := 0
	for ; err == nil; sent++ {
		_, err = sendOne(w, c, numbered(699))
	}
	if !errors.Is(err, journal.ErrBusy) {
		t.Fatalf("after %d sends: %v, want %v", sent, err, journal.ErrBusy)
	}
	if got := w.Stats().Unsynced; got < 64<<10 || got > 66<<10 || calls > 0 {
		t.Fatalf("refused at %d bytes and after %d calls to the disk", got, calls)
	}
	if _, err := keepUp(w, c, "upkeep goes on"); err != nil {
		t.Fatal(err)
	}
	w.notifyWatchers()
	if !status.Busy || status.Full {
		t.Fatalf("senders are refused, and the status is %+v", status)
	}
	commit(t, w)
	if status.Busy {
		t.Fatalf("all is written, and the status is %+v", status)
	}
	if _, err := sendOne(w, c, "admitted again"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A sender that finds no segment ready gets ErrBusy, and does not make one.
func TestSendersDoNotWaitForASegment(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })
	commit(t, w)
	calls := 0
	fault.Before(func(vfs.Op, string) error { calls++; return nil })
	w.preallocating.Store(true) // as if Run had a preallocator at work
	var err error
	for err == nil {
		_, err = sendOne(w, c, numbered(600))
	}
	w.preallocating.Store(false)
	w.notifyWatchers()
	if !errors.Is(err, journal.ErrBusy) || calls > 0 || !status.Busy || status.Full {
		t.Fatalf("%v after %d calls to the disk, status %+v", err, calls, status)
	}
	commit(t, w)
	if _, err := sendOne(w, c, "admitted again"); err != nil || status.Busy {
		t.Fatalf("after a commit: %v, status %+v", err, status)
	}
}

// A claim may end while a sender that found no segment ready makes one. Nothing is
// written under it then.
func TestClaimEndsWhileASegmentIsMade(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	commit(t, w)
	released := false
	fault.Before(func(op vfs.Op, _ string) error {
		if op != vfs.OpCreate || released {
			return nil
		}
		released = true
		return w.Release(ctx, c) // everything is durable: it does not touch the disk
	})
	var err error
	for err == nil && !released {
		if _, err = sendOne(w, c, numbered(600)); err == nil && !released {
			err = w.flush()
		}
	}
	if !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("send with a claim that has ended meanwhile: %v, want %v", err, journal.ErrFenced)
	}
}

// Where overwriting takes space, too, there may be none for the header of a segment that
// is made larger. The group is refused, and has its place when there is some.
func TestEnlargeWithoutSpaceIsNotFinal(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := openWith(t, fault, Options{SegmentSize: 32 << 20})
	c, _ := claim(t, w, 1)
	commit(t, w)
	full := true
	fault.Before(func(op vfs.Op, _ string) error {
		if full && op == vfs.OpWrite {
			return fmt.Errorf("copy on write: %w", vfs.ErrNoSpace)
		}
		return nil
	})
	large := &journal.Group{Records: [][]byte{make([]byte, 20<<20)}, At: make([]journal.Position, 1)}
	if err := w.Append(c, large); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("a large group without space: %v, want %v", err, journal.ErrFull)
	}
	full = false
	if err := w.Append(c, large); err != nil {
		t.Fatalf("with space: %v", err)
	}
	commit(t, w)
	if got, err := journal.ReadOne(ctx, w, large.At[0], nil); err != nil || len(got) != 20<<20 {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
}

// Where overwriting takes space, too, a commit may find none. It waits.
func TestCommitWithoutSpaceIsNotFinal(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })
	commit(t, w)
	full := true
	fault.Before(func(op vfs.Op, name string) error {
		if full && (op == vfs.OpWrite || op == vfs.OpAllocate) {
			return fmt.Errorf("copy on write: %w", vfs.ErrNoSpace)
		}
		return nil
	})
	at := appendOne(t, w, c, "one")
	for range 5 {
		if err := w.Commit(); err != nil && !errors.Is(err, journal.ErrFull) {
			t.Fatalf("commit: %v", err)
		}
	}
	if !status.Full || status.Durable >= at || status.Err != nil {
		t.Fatalf("nothing can be written, and the status is %+v", status)
	}
	last := appendOne(t, w, c, "two") // joins it
	full = false
	commit(t, w)
	if status.Full || status.Durable < last {
		t.Fatalf("there is space again, and the status is %+v, want durable up to %d", status, last)
	}
	if got, err := journal.ReadOne(ctx, w, at, nil); err != nil || string(got) != "one" {
		t.Fatalf("read: %q, %v", got, err)
	}
}

// size returns the bytes of all files.
func size(t *testing.T, fsys vfs.FS) (sum int64) {
	t.Helper()
	names, err := fsys.List(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		n, err := f.Size()
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// A7, A1: a store that is empty, or was drained, is small, whatever went through
// it and whatever was reserved.
func TestIdleStoreIsSmall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		w, err := Open(disk, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		synctest.Wait()
		if got := size(t, disk); got > 32<<20 {
			t.Errorf("an empty store has %d bytes", got)
		}
		record := string(make([]byte, 1<<20)) // zeros take no memory
		var last journal.Position
		for i := range uint64(idleSends) {
			w.Reserve(c, journal.Reservation{Snapshots: i << 19})
			at, err := sendOne(w, c, record)
			for errors.Is(err, journal.ErrBusy) {
				synctest.Wait()
				at, err = sendOne(w, c, record)
			}
			if err != nil {
				t.Fatalf("send %d: %v, %+v", i, err, w.Stats())
			}
			last = at
			synctest.Wait()
		}
		if got := w.Stats(); got.Available < (idleSends-1)<<19 {
			t.Errorf("%+v: less than is reserved", got)
		}
		w.Reserve(c, journal.Reservation{Snapshots: 0})
		if err := w.Truncate(ctx, c, journal.Retain{From: last}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * idleAfter)
		synctest.Wait()
		if got := size(t, disk); got > 100<<20 {
			t.Errorf("drained and idle, the store has %d bytes: %+v", got, w.Stats())
		}
		if at, err := sendOne(w, c, "again"); err != nil {
			t.Errorf("send after a rest: %v", err)
		} else if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
			t.Error(err)
		}
		stop()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := repair.Verify(disk); err != nil {
			t.Error(err)
		}
	})
}

// A1: an idle store is not written either: what it gives back is not made
// again, whatever is reserved.
func TestIdleStoreIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, reserved := range []uint64{0, 100 << 20} {
		synctest.Test(t, func(t *testing.T) {
			fault := vfs.NewFault(vfs.NewMem())
			w, err := Open(fault, Options{})
			if err != nil {
				t.Fatal(err)
			}
			stop := runInBackground(t, w)
			c, _ := claim(t, w, 1)
			w.Reserve(c, journal.Reservation{Snapshots: reserved})
			synctest.Wait()
			record := string(make([]byte, 1<<20)) // zeros take no memory
			var last journal.Position
			for range idleSends / 2 {
				at, err := sendOne(w, c, record)
				for errors.Is(err, journal.ErrBusy) {
					synctest.Wait()
					at, err = sendOne(w, c, record)
				}
				if err != nil {
					t.Fatal(err)
				}
				last = at
				synctest.Wait()
			}
			if err := w.Truncate(ctx, c, journal.Retain{From: last}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			before := writes(fault)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if got := writes(fault) - before; got > 0 {
				t.Errorf("%d bytes reserved: %d calls that write in ten minutes without work, %+v", reserved, got, w.Stats())
			}
			stop()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// One group that is too large for what is left of the disk is refused. The small
// ones of everybody else are not.
func TestLargeGroupDoesNotShutOutSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.SetSize(2 << 30)
		w, err := Open(disk, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var status journal.Status // written by Run, read when it sleeps
		w.Watch(c, func(s journal.Status) { status = s })
		synctest.Wait()
		space, err := disk.Space()
		if err != nil {
			t.Fatal(err)
		}
		disk.SetOthers(space.Free - 30<<20)
		w.Reserve(c, journal.Reservation{Snapshots: 1 << 20}) // has it look
		synctest.Wait()
		large := string(make([]byte, 40<<20))
		for err = journal.ErrBusy; errors.Is(err, journal.ErrBusy); synctest.Wait() {
			_, err = sendOne(w, c, large)
		}
		if !errors.Is(err, journal.ErrFull) {
			t.Fatalf("send 40 MiB: %v, want %v", err, journal.ErrFull)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if status.Full || status.Busy {
			t.Errorf("there is space for small groups, and the status is %+v, %+v", status, w.Stats())
		}
		if _, err := sendOne(w, c, "small"); err != nil {
			t.Errorf("send a small one: %v", err)
		}
		stop()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What was last known of the disk may be old: a journal that says that it is full
// looks again.
func TestFullByOldNewsIsLookedAtAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		disk.SetSize(2 << 30)
		w, err := Open(disk, Options{})
		if err != nil {
			t.Fatal(err)
		}
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var status journal.Status // written by Run, read when it sleeps
		w.Watch(c, func(s journal.Status) { status = s })
		synctest.Wait()
		disk.SetOthers(1 << 40)
		w.low.Notify() // it lacks nothing, and sees that nothing is left
		synctest.Wait()
		disk.SetOthers(0)
		large := string(make([]byte, 30<<20))
		for range 10 {
			if _, err = sendOne(w, c, large); err == nil {
				break
			}
			if !errors.Is(err, journal.ErrBusy) {
				time.Sleep(2 * retryFull)
			}
			synctest.Wait()
		}
		synctest.Wait()
		if err != nil || status.Full {
			t.Errorf("the disk has been empty for a while: send: %v, status %+v, %+v", err, status, w.Stats())
		}
		stop()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// A directory may have no space for a name although the disk has some for data. It
// is tried again like everything else.
func TestFormatWithoutSpaceIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fault := vfs.NewFault(vfs.NewMem())
		w := open(t, fault)
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var status journal.Status // written by Run, read when it sleeps
		w.Watch(c, func(s journal.Status) { status = s })
		synctest.Wait()
		fault.Before(noRename)
		var err error
		for i := 0; err == nil && i < 10_000; i++ {
			_, err = keepUp(w, c, numbered(600))
		}
		if !errors.Is(err, journal.ErrFull) {
			t.Fatalf("append for upkeep: %v, want %v", err, journal.ErrFull)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !status.Full || status.Err != nil {
			t.Fatalf("nothing can be appended, and the status is %+v", status)
		}
		fault.Before(nil)
		time.Sleep(2 * maxSkip * retryFull)
		synctest.Wait()
		if status.Full {
			t.Errorf("there has been space for a while, and the status is %+v, %+v", status, w.Stats())
		}
		stop()
	})
}

// noRename is a disk whose directory has no space for another name.
func noRename(op vfs.Op, name string) error {
	if op == vfs.OpRename {
		return fmt.Errorf("rename %s: %w", name, vfs.ErrNoSpace)
	}
	return nil
}

// Truncation, and the start after a crash in the middle of it, go on where the
// directory has no space for another name.
func TestTruncateWithoutSpaceForNames(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	var at journal.Position
	for c.Segment(at) < 6 {
		at = appendOne(t, w, c, numbered(600))
		commit(t, w)
	}
	var killed *vfs.Mem
	fault.Before(func(op vfs.Op, name string) error {
		if op == vfs.OpRename && killed == nil {
			killed = mem.CrashClone(0)
		}
		return noRename(op, name)
	})
	if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
		t.Fatalf("truncate: %v", err)
	}
	if killed == nil {
		t.Fatal("truncate renamed nothing")
	}
	appendOne(t, w, c, "goes on")
	commit(t, w)

	again := vfs.NewFault(killed)
	again.Before(noRename)
	w, err := Open(again, Options{})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	if _, got := claim(t, w, 1); len(got) != 1 || got[0] != numbered(600) {
		t.Errorf("after a start: %d records, want the last", len(got))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// unknown is a disk that does not say how large it is.
type unknown struct{ vfs.FS }

func (unknown) Space() (vfs.Space, error) { return vfs.Space{}, nil }

// Some network file systems say that they have no blocks at all.
func TestDiskThatDoesNotSayItsSize(t *testing.T) {
	w, err := Open(unknown{vfs.NewMem()}, Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	c, _ := claim(t, w, 1)
	for i := range 1000 {
		if _, err := sendOne(w, c, numbered(i)); err != nil {
			t.Fatalf("send %d: %v, %+v", i, err, w.Stats())
		}
		commit(t, w)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// hooked is a disk that does something else, once, before a file is allocated.
type hooked struct {
	vfs.FS
	before func(name string)
}

type hookedFile struct {
	vfs.File
	fs   *hooked
	name string
}

func (d *hooked) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return hookedFile{f, d, name}, err
}

func (d *hooked) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	return hookedFile{f, d, name}, err
}

func (f hookedFile) Allocate(size int64) error {
	if before := f.fs.before; before != nil {
		f.fs.before = nil
		before(f.name)
	}
	return f.File.Allocate(size)
}

// While a ready segment is made larger it may come to be used, and be freed.
func TestSegmentIsFreedWhileItIsEnlarged(t *testing.T) {
	disk := &hooked{FS: vfs.NewMem()}
	w, err := Open(disk, Options{SegmentSize: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	other, _ := claim(t, w, 2)
	commit(t, w)
	record := string(make([]byte, 512<<10))
	done := false
	disk.before = func(string) {
		var at journal.Position
		for n := other.Segment(appendOne(t, w, other, "x")) + 2; other.Segment(at) < n; { // one for each that is ready
			at = appendOne(t, w, other, record)
		}
		for _, c := range []journal.Claim{c, other} {
			if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
				t.Errorf("truncate: %v", err)
			}
		}
		done = true
	}
	at, err := keepUp(w, c, string(make([]byte, 20<<20)))
	if err != nil || !done {
		t.Fatalf("append 20 MiB: %v, freed meanwhile: %v", err, done)
	}
	commit(t, w)
	if got, err := journal.ReadOne(ctx, w, at, nil); err != nil || len(got) != 20<<20 {
		t.Fatalf("read: %d bytes, %v", len(got), err)
	}
	wantCounted(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantCounted makes sure that the space that is counted is there.
func wantCounted(t *testing.T, w *WAL) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var prepared, spared uint64
	for _, s := range w.pool.ready {
		prepared += s.FreeAfter(format.HeaderSize)
	}
	for _, p := range w.pool.spares {
		spared += p.Usable(w.segmentSize)
	}
	if prepared += spared; prepared != w.pool.prepared || spared != w.pool.spared {
		t.Errorf("%d bytes are prepared, %d of them in spares; counted are %d and %d", prepared, spared, w.pool.prepared, w.pool.spared)
	}
}

// A store that was copied, as from a backup, may have a reserve that has its size and
// no blocks. It counts only if it can have them.
func TestReserveOfACopyHasNoBlocks(t *testing.T) {
	for _, full := range []bool{false, true} {
		mem := vfs.NewMem()
		w := open(t, mem)
		c, _ := claim(t, w, 1)
		w.Reserve(c, journal.Reservation{Snapshots: 50_000})
		commit(t, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		fault := vfs.NewFault(mem)
		asked := 0
		fault.Before(func(op vfs.Op, name string) error {
			if op != vfs.OpAllocate {
				return nil
			}
			asked++
			if full {
				return fmt.Errorf("a hole: %w", vfs.ErrNoSpace)
			}
			return nil
		})
		w = open(t, fault)
		c, _ = claim(t, w, 1)
		_, err := sendOne(w, c, "first")
		if got := w.Stats(); asked == 0 || full != (got.Spares == 0) || err != nil {
			t.Errorf("without space %v: asked %d times, send: %v, %+v", full, asked, err, got)
		}
		if _, err := keepUp(w, c, "what there is of it"); err != nil {
			t.Errorf("without space %v: append for upkeep: %v", full, err)
		}
	}
}
