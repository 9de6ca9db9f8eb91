// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
)

// A delivery is charged before it is taken over,
// once, and the charge comes back whatever becomes of it.
func TestUnsyncedCharges(t *testing.T) {
	root := budget.New(4 * broker.Unsynced(1000, 1))
	var todo []func() // what is to run in the connection's context
	resumed := 0
	newConn := func() *Unsynced {
		return NewUnsynced(root.Child(2*broker.Unsynced(1000, 1)), func(f func()) { todo = append(todo, f) }, func() { resumed++ })
	}
	run := func() {
		for _, f := range todo {
			f()
		}
		todo = nil
	}
	used := func(what string, want int64) {
		t.Helper()
		if got := root.Used(); got != want*broker.Unsynced(1000, 1) {
			t.Errorf("%s: %d bytes are charged, want %d", what, got, want*broker.Unsynced(1000, 1))
		}
	}
	a, b := newConn(), newConn()
	if !a.Reserve(1000, 1) || !a.Reserve(1000, 1) {
		t.Fatal("no space at the beginning")
	}
	used("asked twice for one delivery", 1)
	first := a.Take()
	if !a.Reserve(1000, 1) {
		t.Fatal("no space for a second")
	}
	second := a.Take()
	if a.Reserve(1000, 1) || a.Reserve(1000, 1) {
		t.Error("a connection has more than its share")
	}
	if !b.Reserve(1000, 1) {
		t.Error("a connection that has its share holds up another")
	}
	used("two and one", 3)
	a.answer(first)
	used("answered in a pass that goes on", 3)
	a.settle()
	used("given to who waits", 3)
	if resumed != 0 {
		t.Error("resumed outside of the connection's context")
	}
	run()
	if resumed != 1 || !a.Reserve(1000, 1) {
		t.Errorf("resumed %d times; what was waited for must be there", resumed)
	}
	third := a.Take()
	a.answer(second)
	a.answer(third)
	a.settle()
	used("all of a answered", 1)
	if !b.Reserve(500, 1) {
		t.Error("no space for something smaller")
	}
	if got := root.Used(); got != broker.Unsynced(500, 1) {
		t.Errorf("the unused charge was kept: %d bytes", got)
	}
	b.Close()
	used("closed with an unused charge", 0)

	// Closed while it waits, and while the space it waited for is on its way.
	for _, late := range []bool{false, true} {
		c := newConn()
		c.account.TryTake(c.account.Limit())
		if c.Reserve(1000, 1) {
			t.Fatal("space in a full account")
		}
		if late {
			c.account.Release(c.account.Limit())
		}
		c.Close()
		if !late {
			c.account.Release(c.account.Limit())
		}
		todo = nil // a connection that is over runs nothing
		used("closed while it waits", 0)
	}

	// Cancelled in the same places, and asked about another delivery since.
	for _, late := range []bool{false, true} {
		c := newConn()
		c.account.TryTake(c.account.Limit())
		if c.Reserve(1000, 1) {
			t.Fatal("space in a full account")
		}
		if late {
			c.account.Release(c.account.Limit())
		}
		resumed = 0
		c.Cancel()
		if !late {
			c.account.Release(c.account.Limit())
		}
		if resumed != 1 {
			t.Errorf("resumed %d times when there was nothing to wait for", resumed)
		}
		if !c.Reserve(500, 1) {
			t.Error("no space for the next delivery")
		}
		run()
		if got := root.Used(); got != broker.Unsynced(500, 1) {
			t.Errorf("%d bytes are charged for the next delivery, want %d", got, broker.Unsynced(500, 1))
		}
		c.Cancel()
		used("cancelled", 0)
	}
}
