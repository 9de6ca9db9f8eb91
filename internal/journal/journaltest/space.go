// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// Disk is what a Store offers beside, if its disk can be filled and stopped.
type Disk interface {
	// Fill has others take all of the disk that is free, and Clear makes them
	// give it back.
	Fill()
	Clear()
	// Stall has the disk take its time until resume is called.
	Stall() (resume func())
	// Hang has every call to the disk wait until resume is called.
	Hang() (resume func())
}

// diskOf returns the disk of a store that has one to play with.
func diskOf(t *testing.T, s Store) Disk {
	t.Helper()
	d, ok := s.(Disk)
	if !ok {
		t.Skip("the disk of this store cannot be filled")
	}
	return d
}

// send appends a record for senders.
func (o owner) send(payload string) (journal.Position, error) {
	return o.put(payload, journal.Ordinary)
}

// keepUp appends a record for upkeep.
func (o owner) keepUp(payload string) (journal.Position, error) {
	return o.put(payload, journal.Essential)
}

func (o owner) put(payload string, use journal.Use) (journal.Position, error) {
	var at [1]journal.Position
	err := o.j.Append(o.Claim, &journal.Group{Records: [][]byte{[]byte(payload)}, At: at[:], Use: use})
	return at[0], err
}

// patience is how long something may take that is to happen soon.
const patience = 20 * time.Second

// sendUntilFull sends until the disk is full.
func (o owner) sendUntilFull(t *testing.T, s Store) {
	t.Helper()
	payload := string(make([]byte, o.SegmentSize/50))
	for begin := time.Now(); time.Since(begin) < patience; {
		_, err := o.send(payload)
		switch {
		case err == nil:
		case errors.Is(err, journal.ErrFull):
			return
		case errors.Is(err, journal.ErrBusy):
			s.Settle(t)
			runtime.Gosched()
		default:
			t.Fatalf("send: %v", err)
		}
	}
	t.Fatal("the disk is filled, and senders are never refused")
}

// wantLetIn sends, which may take a moment but must not be refused permanently.
func (o owner) wantLetIn(t *testing.T, s Store) {
	t.Helper()
	_, err := o.send("admitted again")
	for begin := time.Now(); errors.Is(err, journal.ErrBusy) && time.Since(begin) < patience; {
		s.Settle(t)
		runtime.Gosched()
		_, err = o.send("admitted again")
	}
	if err != nil {
		t.Fatalf("send to a disk that has space again: %v", err)
	}
}

// statuses are what a watcher got.
type statuses struct {
	mu  sync.Mutex
	all []journal.Status // guarded by mu
}

func (o owner) watch() *statuses {
	s := new(statuses)
	o.j.Watch(o.Claim, func(st journal.Status) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, st)
	})
	return s
}

// last returns the latest status; zero if there was none.
func (w *statuses) last() journal.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return journal.Status{}
	}
	return w.all[len(w.all)-1]
}

// wait settles until the last status is as wanted.
func (w *statuses) wait(t *testing.T, s Store, what string, want func(journal.Status) bool) {
	t.Helper()
	var last journal.Status
	for begin := time.Now(); time.Since(begin) < patience; {
		s.Settle(t)
		last = w.last()
		if last != (journal.Status{}) && want(last) {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%s: status %+v", what, last)
}

// sendersLeaveTheReserve: after senders are refused there is what was reserved, and
// upkeep gets it.
func sendersLeaveTheReserve(t *testing.T, s Store) {
	d := diskOf(t, s)
	o, _ := claim(t, s.Open(t), 1)
	status := o.watch()
	reserved := 10 * o.SegmentSize
	o.j.Reserve(o.Claim, journal.Reservation{Snapshots: reserved})
	status.wait(t, s, "new", func(st journal.Status) bool { return !st.Full && !st.Busy })
	if got := o.j.Usage(o.Claim).Reserved; got < reserved {
		t.Errorf("reserved %d, want at least %d", got, reserved)
	}
	d.Fill()
	o.sendUntilFull(t, s)
	status.wait(t, s, "senders are refused", func(st journal.Status) bool { return st.Full && st.Err == nil })

	payload, got := string(make([]byte, o.SegmentSize/50)), uint64(0)
	for {
		_, err := o.keepUp(payload)
		if errors.Is(err, journal.ErrFull) {
			break
		}
		if err != nil {
			t.Fatalf("upkeep: %v", err)
		}
		got += uint64(journal.RecordSize(len(payload)))
		if got > 100*reserved {
			t.Fatal("the disk is filled, and there is no end to it")
		}
		s.Settle(t)
	}
	if got < reserved {
		t.Errorf("upkeep got %d bytes of the %d that it has reserved", got, reserved)
	}
	if _, err := o.send("x"); !errors.Is(err, journal.ErrFull) {
		t.Errorf("send when nothing is left: %v, want %v", err, journal.ErrFull)
	}
	s.Settle(t)
}

// fullClears: by truncation, and by others who leave.
func fullClears(t *testing.T, s Store) {
	d := diskOf(t, s)
	o, _ := claim(t, s.Open(t), 1)
	status := o.watch()
	o.fill(t, o.Segment(o.add(t, "first")[0].at)+10)
	s.Settle(t)
	d.Fill()
	o.sendUntilFull(t, s)
	status.wait(t, s, "senders are refused", func(st journal.Status) bool { return st.Full })

	last, err := o.keepUp("the end of a snapshot")
	if err != nil {
		t.Fatalf("upkeep on a full disk: %v", err)
	}
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: last}); err != nil {
		t.Fatalf("truncate on a full disk: %v", err)
	}
	status.wait(t, s, "everything was freed", func(st journal.Status) bool { return !st.Full && !st.Busy })
	o.wantLetIn(t, s)

	o.sendUntilFull(t, s)
	d.Clear()
	status.wait(t, s, "others have left", func(st journal.Status) bool { return !st.Full && !st.Busy })
	o.wantLetIn(t, s)
}

// fullIsKnownAtOnce: a journal that is opened on a full disk says so before it
// takes anything.
func fullIsKnownAtOnce(t *testing.T, s Store) {
	d := diskOf(t, s)
	o, _ := claim(t, s.Open(t), 1)
	o.j.Reserve(o.Claim, journal.Reservation{Snapshots: 10 * o.SegmentSize})
	o.watch().wait(t, s, "new", func(st journal.Status) bool { return !st.Full && !st.Busy })
	d.Fill()
	o.sendUntilFull(t, s)
	o.fill(t, o.Segment(o.add(t, "upkeep")[0].at)+2)
	s.Settle(t)
	o, _ = claim(t, s.Open(t), 1)
	o.j.Reserve(o.Claim, journal.Reservation{Snapshots: 10 * o.SegmentSize}) // as before: it may need no less
	if st := o.j.Status(o.Claim); !st.Full {
		t.Errorf("before anything was appended the status is %+v, want full", st)
	}
	if _, err := o.send("first"); !errors.Is(err, journal.ErrFull) {
		t.Errorf("the first send: %v, want %v", err, journal.ErrFull)
	}
	status := o.watch()
	s.Settle(t)
	status.mu.Lock()
	defer status.mu.Unlock()
	if len(status.all) == 0 || !status.all[0].Full {
		t.Errorf("the first status is %+v, want full", status.all)
	}
}

// busySendersAreRefused: they do not wait for a disk that takes its time.
func busySendersAreRefused(t *testing.T, s Store) {
	d := diskOf(t, s)
	o, _ := claim(t, s.Open(t), 1)
	status := o.watch()
	status.wait(t, s, "new", func(st journal.Status) bool { return !st.Full && !st.Busy })
	resume := d.Stall()
	payload := string(make([]byte, o.SegmentSize/50))
	var err error
	sent := 0
	for ; err == nil && sent < 100_000; sent++ {
		_, err = o.send(payload)
	}
	if !errors.Is(err, journal.ErrBusy) {
		t.Errorf("after %d sends that are not synced: %v, want %v", sent, err, journal.ErrBusy)
	}
	resume()
	status.wait(t, s, "the disk has caught up", func(st journal.Status) bool { return !st.Full && !st.Busy })
	o.wantLetIn(t, s)
}

// usageFalls: what a shard holds back is known, and less after a truncation.
func usageFalls(t *testing.T, s Store) {
	j := s.Open(t)
	o, _ := claim(t, j, 1)
	other, _ := claim(t, j, 2)
	all := o.fill(t, o.Segment(o.add(t, "first")[0].at)+6)
	s.Settle(t)
	last := all[len(all)-1]
	if u := j.Usage(o.Claim); u.HeldBack < 5*o.SegmentSize {
		t.Errorf("the owner of six segments holds back %d bytes", u.HeldBack)
	}
	if u := j.Usage(other.Claim); u.HeldBack != 0 {
		t.Errorf("an owner before which another one has to move holds back %d bytes", u.HeldBack)
	}
	if err := j.Truncate(t.Context(), o.Claim, journal.Retain{From: last.at}); err != nil {
		t.Fatal(err)
	}
	if u := j.Usage(o.Claim); u.HeldBack != 0 {
		t.Errorf("after its truncation an owner holds back %d bytes", u.HeldBack)
	}
	if u := j.Usage(other.Claim); u.HeldBack < 5*o.SegmentSize {
		t.Errorf("the owner that is left behind holds back %d bytes", u.HeldBack)
	}
	if err := j.Truncate(t.Context(), other.Claim, journal.Retain{From: last.at}); err != nil {
		t.Fatal(err)
	}
	if u := j.Usage(other.Claim); u.HeldBack > 2*o.SegmentSize {
		t.Errorf("after both have moved on the owner holds back %d bytes", u.HeldBack)
	}
}

// emptyMovesOn: an owner that has never appended anything need not hold the log back.
func emptyMovesOn(t *testing.T, s Store) {
	j := s.Open(t)
	busy, _ := claim(t, j, 1)
	idle, _ := claim(t, j, 2)
	all := busy.fill(t, busy.Segment(busy.add(t, "first")[0].at)+8)
	s.Settle(t)
	last := all[len(all)-1]
	if err := j.Truncate(t.Context(), busy.Claim, journal.Retain{From: last.at}); err != nil {
		t.Fatal(err)
	}
	idle.wantRead(t, all[0]) // it may have records behind it, as far as the journal knows
	if err := j.Truncate(t.Context(), idle.Claim, journal.Retain{From: j.Status(idle.Claim).Durable}); err != nil {
		t.Fatalf("an owner without records moves on: %v", err)
	}
	busy.fill(t, busy.Segment(last.at)+8)
	if _, err := journal.ReadOne(t.Context(), j, all[0].at, nil); !errors.Is(err, journal.ErrFreed) {
		t.Errorf("the first record, which no shard keeps: %v, want %v", err, journal.ErrFreed)
	}
	s.Settle(t)
	_, got := claim(t, s.Open(t), 2)
	wantEntries(t, got, nil)
}
