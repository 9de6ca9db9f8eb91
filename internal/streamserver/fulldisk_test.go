// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// fillDisk sends until the disk is full.
func (r *rig) fillDisk(size int64) {
	r.t.Helper()
	r.disk.SetSize(size)
	for n := 0; ; n++ {
		if _, err := r.try(&Append{Count: 1, Raw: make([]byte, max(4000, size>>12))}); errors.Is(err, ErrDiskFull) {
			return
		} else if err != nil || n > 10_000 {
			r.t.Fatal(n, err)
		}
	}
}

// Processors go on on a full disk: they report how far they are, come and go, and claim, as
// often as they like. What an operator changes waits until there is space.
func TestProcessorsGoOnOnAFullDisk(t *testing.T) {
	for _, before := range []string{"they were there", "they come later"} {
		t.Run(before, func(t *testing.T) {
			r := newRig(t, Settings{Partitions: 2, RetainFor: time.Hour})
			var a *heard
			if before == "they were there" {
				a = r.join("a", "1")
				r.pass(window)
			}
			r.fillDisk(4 << 20)
			if a == nil {
				a = r.join("a", "1")
				r.pass(window)
			}
			a.owns(t, "0@1 1@1")
			last := r.h.partitions[0].m.Next() - 1
			for n := range last {
				if err := r.checkpoint(0, 1, n); err != nil {
					t.Fatalf("checkpoint %d: %v", n, err)
				}
			}
			a.Gone()
			r.settle()
			a = r.join("a", "1")
			r.settle()
			a.owns(t, "0@1 1@1")
			claim := func(etag string) string {
				won, err := run(r, func() ([]group.Ownership, error) {
					return r.h.Claim(t.Context(), "claimed", []group.Ownership{{Partition: 1, Owner: "p", ETag: etag}})
				})
				if err != nil || len(won) != 1 {
					t.Fatalf("claim: %v, %v", won, err)
				}
				return won[0].ETag
			}
			etag := ""
			for range 20_000 { // many times the reserve
				etag = claim(etag)
				r.work()
			}
			for i := range 1_000 { // a process that is restarted again and again
				a = r.join("a", fmt.Sprint("run ", i))
				r.pass(window)
			}
			if err := r.do(func() error { return r.h.Pause(t.Context(), "g", nil, r.now.Add(time.Hour)) }); !errors.Is(err, ErrDiskFull) {
				t.Errorf("a pause: %v", err)
			}
			if err := r.do(func() error { return r.h.Pause(t.Context(), "g", nil, time.Time{}) }); err != nil {
				t.Errorf("the end of a pause: %v", err)
			}
			if _, err := run(r, func() ([]stream.SeqNo, error) { return r.h.Rewind(t.Context(), "g", []int{0}, stream.Earliest()) }); !errors.Is(err, ErrDiskFull) {
				t.Errorf("a rewind: %v", err)
			}
			if _, err := r.try(&Append{Count: 1, Raw: make([]byte, 4000)}); !errors.Is(err, ErrDiskFull) {
				t.Errorf("a sender: %v", err)
			}
			r.settle()
			r.crash(1)
			info, err := run(r, func() (GroupInfo, error) { return r.h.Group(t.Context(), "g") })
			if err != nil || info.Partitions[0].Checkpoint == nil || info.Partitions[0].Checkpoint.SeqNo != last-1 {
				t.Errorf("after a crash: %+v, %v", info.Partitions, err)
			}
			r.check()
		})
	}
}

// What grows without end is refused on a full disk before the reserve is used up; what is
// there is changed as often as its owners like.
func TestGroupsDoNotGrowOnAFullDisk(t *testing.T) {
	const partitions = 50
	r := newRigOf(t, Settings{Partitions: partitions, RetainFor: time.Hour}, 1<<20) // as on a small disk
	r.fillDisk(64 << 20)
	all := make([]group.Ownership, partitions)
	for n := range all {
		all[n] = group.Ownership{Partition: n, Owner: "p"}
	}
	claim := func(name string, of []group.Ownership) ([]group.Ownership, error) {
		defer r.work()
		return run(r, func() ([]group.Ownership, error) { return r.h.Claim(t.Context(), name, of) })
	}
	name := func(i int) string { return strings.Repeat("a long name ", 20) + fmt.Sprint(i) }
	claimed := 0
	for ; ; claimed++ {
		won, err := claim(name(claimed), all)
		if errors.Is(err, ErrDiskFull) {
			break
		}
		if err != nil || claimed > 1000 {
			t.Fatalf("group %d: %d claims, %v", claimed, len(won), err)
		}
	}
	if claimed == 0 {
		t.Error("not one group can be claimed")
	}
	t.Logf("%d groups of %d partitions were claimed", claimed, partitions)
	held, err := run(r, func() ([]group.Ownership, error) { return r.h.Claims(t.Context(), name(0)) })
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		r.now = r.now.Add(100 * time.Millisecond) // what may be written in a second is bounded, too
		won, err := claim(name(0), held)
		if err != nil || len(won) != len(held) {
			t.Fatalf("%d of %d claims are renewed: %v", len(won), len(held), err)
		}
		held = won
	}
	r.check()
}
