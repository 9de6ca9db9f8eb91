// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func wantUsed(t *testing.T, a *Account, want int64) {
	t.Helper()
	if got := a.Used(); got != want {
		t.Errorf("%d bytes are charged, want %d", got, want)
	}
}

func TestChargesCountAllTheWayUp(t *testing.T) {
	root := New(100)
	a, b := root.Child(60), root.Child(1000)
	if b.Limit() != 100 {
		t.Errorf("a child may have %d of 100", b.Limit())
	}
	for _, c := range []struct {
		of *Account
		n  int64
		ok bool
	}{{a, 50, true}, {a, 20, false}, {b, 60, false}, {b, 50, true}, {a, 1, false}} {
		if got := c.of.TryTake(c.n); got != c.ok {
			t.Errorf("take %d: %v, want %v", c.n, got, c.ok)
		}
	}
	wantUsed(t, root, 100)
	wantUsed(t, a, 50)
	a.Release(50)
	b.Release(50)
	wantUsed(t, root, 0)
}

func TestEmptyAccountTakesWhatIsTooLarge(t *testing.T) {
	root := New(100)
	a, b := root.Child(50), root.Child(50)
	if !a.TryTake(300) {
		t.Error("what is larger than the limit can never be done")
	}
	if b.TryTake(1) {
		t.Error("and leaves space for others")
	}
	a.Release(300)
	if !b.TryTake(1) || a.TryTake(300) {
		t.Error("the root is not empty: it must wait")
	}
}

// waits charges bytes, or logs when they are charged later.
func waits(a *Account, n int64, name string, log *[]string) (withdraw func()) {
	taken, withdraw := a.TakeOrWait(n, func() { *log = append(*log, name) })
	if taken {
		*log = append(*log, name+" at once")
	}
	return withdraw
}

func TestWaitersAreServedInOrder(t *testing.T) {
	root := New(100)
	a, b := root.Child(100), root.Child(100)
	var log []string
	waits(a, 90, "first", &log)
	waits(b, 80, "large", &log)
	waits(a, 5, "small", &log)
	if a.TryTake(5) {
		t.Error("a new charge overtook the waiters")
	}
	a.Release(40)
	waits(a, 1, "last", &log)
	a.Release(50)
	if want := []string{"first at once", "large", "small", "last"}; !slices.Equal(log, want) {
		t.Errorf("in the order %q, want %q", log, want)
	}
	wantUsed(t, root, 86)
}

// A waiter that is blocked by its own limit does not block others.
func TestFullAccountBlocksNoOther(t *testing.T) {
	root := New(100)
	greedy, modest := root.Child(30), root.Child(30)
	var log []string
	waits(greedy, 30, "greedy", &log)
	waits(greedy, 30, "greedy again", &log)
	waits(modest, 30, "modest", &log)
	if want := []string{"greedy at once", "modest at once"}; !slices.Equal(log, want) {
		t.Errorf("in the order %q, want %q", log, want)
	}
	modest.Release(30)
	if len(log) != 2 {
		t.Errorf("space of another account was charged for a waiter beyond its own limit: %q", log)
	}
	greedy.Release(30)
	wantUsed(t, root, 30)
}

func TestWithdrawing(t *testing.T) {
	root := New(100)
	var log []string
	waits(root, 60, "first", &log)
	large := waits(root, 80, "large", &log)
	waits(root, 20, "small", &log)
	large()
	large()
	if want := []string{"first at once", "small"}; !slices.Equal(log, want) {
		t.Errorf("in the order %q, want %q", log, want)
	}
	late := waits(root, 50, "late", &log)
	root.Release(60)
	wantUsed(t, root, 70)
	late() // after it was charged
	late()
	wantUsed(t, root, 20)
}

func TestTakeWaitsForSpaceOrTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := New(10)
		if err := root.Take(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- root.Take(ctx, 5) }()
		synctest.Wait()
		go func() { second <- root.Take(t.Context(), 5) }()
		synctest.Wait()
		cancel(gone)
		if err := <-first; !errors.Is(err, gone) {
			t.Errorf("Take: %v, want %v", err, gone)
		}
		root.Release(10)
		if err := <-second; err != nil {
			t.Errorf("Take: %v", err)
		}
		wantUsed(t, root, 5)
	})
}

// Many goroutines take, wait, withdraw and release: no account is beyond its
// limit, and in the end nothing is charged and no charge waits.
func TestManyAtOnce(t *testing.T) {
	root := New(1000)
	keys := []*Account{root.Child(600), root.Child(600)}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 0))
			a := keys[i%2].Child(int64(100 + 50*i))
			for range 2000 {
				n := 1 + rng.Int64N(a.Limit())
				ready := make(chan struct{})
				taken, withdraw := a.TakeOrWait(n, func() { close(ready) })
				switch {
				case !taken && rng.IntN(4) == 0:
					withdraw()
					continue
				case !taken:
					<-ready
				}
				if used := root.Used(); used > 1000 {
					t.Errorf("%d of 1000 are used", used)
				}
				a.Release(n)
			}
		})
	}
	wg.Wait()
	wantUsed(t, root, 0)
	if n := root.tree.waiting.Len(); n > 0 || root.stuck > 0 {
		t.Errorf("%d wait, %d are stuck", n, root.stuck)
	}
}

func BenchmarkTakeRelease(b *testing.B) {
	a := New(1 << 30).Child(1 << 29)
	b.RunParallel(func(pb *testing.PB) {
		c := a.Child(1 << 28)
		for pb.Next() {
			if c.TryTake(100) {
				c.Release(100)
			}
		}
	})
}

// Charge always counts, and leaves less space for later charges.
func TestForcedChargesGoBeyondTheLimit(t *testing.T) {
	root := New(100)
	a, b := root.Child(50), root.Child(50)
	a.Charge(80)
	wantUsed(t, root, 80)
	if a.Available() != -30 || b.Available() != 20 {
		t.Errorf("space for %d and %d, want -30 and 20", a.Available(), b.Available())
	}
	if a.TryTake(1) || !b.TryTake(20) || b.TryTake(1) {
		t.Error("what was forced does not count")
	}
	a.Release(80)
	if a.Available() != 50 || !a.TryTake(50) {
		t.Error("the forced charge was not released")
	}
}

// An account goes below another parent with everything that is charged below it.
func TestMove(t *testing.T) {
	root := New(1000)
	unauthenticated, known := root.Child(100), root.Child(800)
	a := unauthenticated.Child(60)
	link := a.Child(60)
	link.Charge(40)
	a.Charge(20)
	a.Move(known, 500)
	for _, c := range []struct {
		of          *Account
		used, space int64
	}{{unauthenticated, 0, 100}, {known, 60, 740}, {root, 60, 940}, {a, 60, 440}, {link, 40, 20}} {
		if c.of.Used() != c.used || c.of.Available() != c.space {
			t.Errorf("%d are used and %d free, want %d and %d", c.of.Used(), c.of.Available(), c.used, c.space)
		}
	}
	link.Release(40)
	a.Release(20)
	wantUsed(t, root, 0)
	wantUsed(t, known, 0)
}

// A waiter below an account that moves is blocked by the accounts above it
// then, and no longer blocks those below its old parent.
func TestMoveTakesWaitersAlong(t *testing.T) {
	root := New(1000)
	unauthenticated, known := root.Child(100), root.Child(500)
	a, other := unauthenticated.Child(60), unauthenticated.Child(60)
	var log []string
	waits(unauthenticated, 90, "others", &log)
	waits(a, 50, "moved", &log) // blocked by the unauthenticated account
	a.Move(known, 200)
	if want := []string{"others at once", "moved"}; !slices.Equal(log, want) {
		t.Fatalf("in the order %q, want %q", log, want)
	}
	if !other.TryTake(10) {
		t.Error("a waiter that has moved blocks others")
	}
	// Moved below a full account: it waits there.
	known.Charge(440)
	b := unauthenticated.Child(60)
	waits(b, 20, "full", &log)
	b.Move(known, 60)
	if !other.TryTake(0) || b.TryTake(1) {
		t.Error("the moved waiter does not block its new parent, or still blocks the old one")
	}
	known.Release(440)
	if want := "full"; log[len(log)-1] != want {
		t.Errorf("in the order %q, want %q at the end", log, want)
	}
	if unauthenticated.stuck != 0 || known.stuck != 0 || a.stuck != 0 || b.stuck != 0 {
		t.Error("a waiter is counted as stuck, and no charge waits")
	}
}

// Scarce reports before nothing is left, in every account.
func TestScarce(t *testing.T) {
	parent := New(1000)
	a, b := parent.Child(400), parent.Child(900)
	one, other := NewCounter(a), NewCounter(b)
	if !one.Take(290) || one.Scarce() {
		t.Error("with 110 of 400 left: scarce, want not")
	}
	if !one.Take(20) || !one.Scarce() {
		t.Error("with 90 of 400 left: not scarce")
	}
	if other.Scarce() {
		t.Error("what another has used up is scarce")
	}
	if !other.Take(600) || !other.Scarce() {
		t.Error("with 90 of 1000 left for all: not scarce")
	}
}

// Short-lived charges continue when an account is used up, up to a bound.
func TestTakeBeyondIsBounded(t *testing.T) {
	root := New(1 << 20)
	a := root.Child(800)
	c := NewCounter(a)
	for a.Used() < 800 {
		a.Charge(1)
	}
	if a.TryTake(1) || c.Take(1) {
		t.Error("there is space in an account that is used up")
	}
	if !c.TakeBeyond(99) || !a.TakeBeyond(500) || a.TakeBeyond(1) || c.TakeBeyond(1) {
		t.Errorf("%d are charged of %d", a.Used(), a.Limit())
	}
	a.Release(500)
	if !c.TakeBeyond(10) || c.Used() != 109 || a.Used() != 909 {
		t.Errorf("%d are counted, and %d charged", c.Used(), a.Used())
	}
	c.Close()
	if a.Used() != 800 {
		t.Errorf("%d are charged after the end", a.Used())
	}
	// An account above counts as well.
	root.Charge(2 << 20)
	if a.TakeBeyond(1) {
		t.Error("the account above is used up")
	}
}

// A release checks no more waiters than it may find space for: ten thousand
// waiters for one account must not cost each release ten thousand steps.
func TestReleaseChecksFewWaiters(t *testing.T) {
	root := New(1 << 20)
	u := root.Child(1000)
	u.Charge(1000)
	found := 0
	for range 5 {
		u.Child(500).TakeOrWait(300, func() { found++ })
	}
	last := root.tree.waiting.Back().Value.(*waiter)
	account := last.account
	last.account = nil // a check of this waiter panics
	u.Release(300)
	u.Release(100)
	root.Charge(10)
	root.Release(10)
	if found != 1 {
		t.Errorf("%d were admitted", found)
	}
	last.account = account
	u.Release(600)
	if found != 3 {
		t.Errorf("%d were admitted", found)
	}
	// With a waiter for another account all are checked.
	other := root.Child(10)
	other.Charge(10)
	other.TakeOrWait(5, func() { found += 100 })
	other.Release(10)
	if found != 103 || root.below != 2 || u.below != 2 || other.below != 0 {
		t.Errorf("%d were admitted, %d, %d and %d wait", found, root.below, u.below, other.below)
	}
}

// What messages grow by beyond their limit does not take the memory of other stored state.
func TestMessagesBeyondTheirLimitLeaveTheRest(t *testing.T) {
	s := newStored(1000)
	s.Messages.Charge(2000)
	wantUsed(t, s.All, 750)
	if !s.Definitions.TryTake(100) || !s.Groups.TryTake(100) {
		t.Error("there is no memory for definitions and groups")
	}
	s.Messages.Release(1500)
	wantUsed(t, s.Messages, 500)
	wantUsed(t, s.All, 700)
}
