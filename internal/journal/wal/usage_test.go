// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"reflect"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A15: what a claim costs is counted in bytes, not in addresses. The first
// segments of a store are small, one, four and sixteen megabytes, and each takes
// the addresses of 64.
func TestUsageCountsBytes(t *testing.T) {
	disk := vfs.NewMem()
	w, err := Open(disk, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	if got := w.Usage(c); got.HeldBack == 0 || got.HeldBack > 4<<10 {
		t.Errorf("a new claim: %+v", got)
	}

	payload := make([]byte, 100<<10)
	var at []journal.Position
	wrote := uint64(0)
	for len(at) == 0 || c.Segment(at[len(at)-1]) < 3 {
		at = append(at, appendOne(t, w, c, string(payload)))
		wrote += uint64(format.FrameSize(len(payload)) + format.BatchHeader)
		commit(t, w)
	}
	// A segment that is full counts whole, so there may be a group more in each.
	near := func(when string, got, want uint64) {
		t.Helper()
		if got < want || got > want+5*uint64(len(payload)) {
			t.Errorf("%s: %d bytes behind, want about %d", when, got, want)
		}
	}
	addresses := uint64(at[len(at)-1] - at[0])
	if addresses < 10*wrote {
		t.Fatalf("%d bytes take %d addresses: the test shows nothing", wrote, addresses)
	}
	near("running", w.Usage(c).HeldBack, wrote)

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = Open(disk, Options{}); err != nil {
		t.Fatal(err)
	}
	c, got := claim(t, w, 1)
	if len(got) != len(at) {
		t.Fatalf("%d records, want %d", len(got), len(at))
	}
	near("reopened", w.Usage(c).HeldBack, wrote)

	// From on a record in the second segment, with the first kept for its bodies.
	half := 0
	for c.Segment(at[half]) < 2 {
		half++
	}
	half += 5
	keep := journal.Retain{From: at[half], Segments: []uint64{1}}
	if err := w.Truncate(ctx, c, keep); err != nil {
		t.Fatal(err)
	}
	rest := uint64(len(at)-half) * uint64(format.FrameSize(len(payload))+format.BatchHeader)
	near("truncated", w.Usage(c).HeldBack, rest)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w, err = Open(disk, Options{}); err != nil {
		t.Fatal(err)
	}
	c, _ = claim(t, w, 1)
	near("truncated and reopened", w.Usage(c).HeldBack, rest)

	if err := w.Truncate(ctx, c, journal.Retain{From: at[len(at)-1]}); err != nil {
		t.Fatal(err)
	}
	near("all but the last truncated", w.Usage(c).HeldBack, uint64(format.FrameSize(len(payload))))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A shard holds the log back if no other begins its replay earlier; ties count. What is
// reserved is the sum over all, and a claim that is void costs nothing.
func TestUsageOfSeveralShards(t *testing.T) {
	disk := vfs.NewMem()
	w := open(t, disk)
	one, _ := claim(t, w, 1)
	two, _ := claim(t, w, 2)
	at := appendOne(t, w, one, "first")
	last := appendOne(t, w, two, "second")
	commit(t, w)
	for _, c := range []journal.Claim{one, two} {
		if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := w.Usage(one), w.Usage(two); a.HeldBack == 0 || a.HeldBack != b.HeldBack {
		t.Errorf("both from the same place on: %+v and %+v", a, b)
	}
	if err := w.Truncate(ctx, one, journal.Retain{From: last}); err != nil {
		t.Fatal(err)
	}
	if a, b := w.Usage(one), w.Usage(two); a.HeldBack != 0 || b.HeldBack == 0 {
		t.Errorf("the first from a later place on: %+v and %+v", a, b)
	}
	own := w.Usage(one).Reserved // what the log itself writes to truncate
	w.Reserve(one, journal.Reservation{Snapshots: 100})
	w.Reserve(two, journal.Reservation{Snapshots: 20})
	w.Reserve(two, journal.Reservation{Snapshots: 11})
	if a, b := w.Usage(one).Reserved, w.Usage(two).Reserved; a != own+111 || b != own+111 {
		t.Errorf("reserved %d and %d, want 111 more than %d", a, b, own)
	}
	again, _ := claim(t, w, 1)
	if got := w.Usage(one); !reflect.DeepEqual(got, journal.Usage{}) {
		t.Errorf("a void claim: %+v", got)
	}
	if got := w.Usage(again); got.Reserved != own+11 {
		t.Errorf("a new claim has reserved nothing, and there are %d, want 11 more than %d", got.Reserved, own)
	}
}
