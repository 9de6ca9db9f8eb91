// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/group"
)

// What consumer groups keep is charged before it is stored, and refused if there is no memory.
// A restart charges what is there, also beyond a limit that is lower by now, and a hub that
// ends gives it back.
func TestGroupsAreCharged(t *testing.T) {
	r := newRig(t, Settings{Partitions: 64})
	r.opts.Stored = budget.New(64*partitionCost + 100<<10)
	r.crash(1)
	r.settle()
	claim := func(grp string) error {
		return r.do(func() error {
			cs := make([]group.Ownership, 64)
			for i := range cs {
				cs[i] = group.Ownership{Partition: i, Owner: "x"}
			}
			_, err := r.h.Claim(t.Context(), grp, cs)
			return err
		})
	}
	n := 0
	var err error
	for ; err == nil && n < 100; n++ {
		err = claim(fmt.Sprint("group", n))
	}
	if !errors.Is(err, group.ErrMemory) || n < 3 {
		t.Fatalf("claim %d: %v, want %v", n, err, group.ErrMemory)
	}
	if _, err := r.tryJoin("m", "1"); !errors.Is(err, group.ErrMemory) {
		t.Errorf("join: %v, want %v", err, group.ErrMemory)
	}
	used := r.opts.Stored.Used()
	if want := r.h.groups.m.Size() + 64*partitionCost; used != want || used > 300<<10 {
		t.Errorf("%d bytes are charged for %d", used, want)
	}
	r.opts.Stored = budget.New(1000)
	r.crash(2)
	r.settle()
	if again := r.opts.Stored.Used(); again != used {
		t.Errorf("after a restart %d bytes are charged, before %d", again, used)
	}
	if err := r.do(func() error { return r.h.ForgetGroup(t.Context(), "group0") }); err != nil {
		t.Fatal(err)
	}
	if now := r.opts.Stored.Used(); now >= used {
		t.Errorf("without a group %d bytes are charged, before %d", now, used)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = r.h.Run(ctx)
	if now := r.opts.Stored.Used(); now != 0 {
		t.Errorf("%d bytes are charged for a hub that has ended", now)
	}
}

// Partitions are in memory and there again after a restart, so they are charged.
func TestPartitionsAreCharged(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	r.opts.Stored = budget.New(40 << 10)
	r.crash(1)
	r.settle()
	if used := r.opts.Stored.Used(); used != 4*partitionCost {
		t.Errorf("%d bytes are charged for 4 partitions", used)
	}
	if err := r.do(func() error { return r.h.Configure(t.Context(), Settings{Partitions: 32}) }); !errors.Is(err, ErrMemory) {
		t.Errorf("more partitions: %v, want %v", err, ErrMemory)
	}
	if err := Fits(r.opts.Stored, Settings{Partitions: 32}); !errors.Is(err, ErrMemory) {
		t.Errorf("another hub: %v, want %v", err, ErrMemory)
	}
	r.append(1, 10, 100)
}

// A request may claim some partitions and renew the claims of others. Without memory the new
// claims are lost, and the others are renewed, whatever comes first: who loses all of them
// has to stop.
func TestClaimsAreRenewedWithoutMemory(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	r.opts.Stored = budget.New(100 << 10)
	r.crash(1)
	r.settle()
	claim := func(cs ...group.Ownership) (won []group.Ownership, err error) {
		return won, r.do(func() (err error) {
			won, err = r.h.Claim(t.Context(), "g", cs)
			return err
		})
	}
	mine, err := claim(group.Ownership{Partition: 2, Owner: "x"}, group.Ownership{Partition: 3, Owner: "x"})
	if err != nil || len(mine) != 2 {
		t.Fatal(mine, err)
	}
	r.opts.Stored.Charge(100 << 10) // by another hub
	for i := range 400 {            // and this one uses up what it has in any case
		_ = r.do(func() error {
			_, err := r.h.Claim(t.Context(), fmt.Sprint("group", i/4), []group.Ownership{{Partition: i % 4, Owner: "x"}})
			return err
		})
	}
	fresh := []group.Ownership{{Partition: 0, Owner: "x"}, {Partition: 1, Owner: "x"}}
	if won, err := claim(append(fresh, mine...)...); err != nil || len(won) != 2 || won[0].Partition != 2 || won[1].Partition != 3 {
		t.Errorf("won %v, %v; want both claims that there were", won, err)
	}
	if _, err := claim(fresh...); !errors.Is(err, group.ErrMemory) {
		t.Errorf("new ones only: %v, want %v", err, group.ErrMemory)
	}
}

// A hub whose groups take little is not stopped by those of others: a fleet that is started
// anew can join and claim, and a process that was away for a moment can come back.
func TestEachHubHasMemoryForAGroup(t *testing.T) {
	r := newRig(t, Settings{Partitions: 32})
	r.opts.Stored = budget.New(1 << 20)
	r.crash(1)
	r.settle()
	r.opts.Stored.Charge(1 << 20) // by other hubs
	joined := 0
	var err error
	for ; err == nil && joined < 1000; joined++ {
		_, err = r.tryJoin(fmt.Sprint("member", joined), "1")
	}
	if !errors.Is(err, group.ErrMemory) || joined < 40 {
		t.Fatalf("member %d: %v, want %v after some dozens", joined, err, group.ErrMemory)
	}
	if size := r.h.groups.m.Size(); size > 128<<10 {
		t.Errorf("the groups take %d bytes", size)
	}
}
