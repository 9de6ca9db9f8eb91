// SPDX-License-Identifier: Apache-2.0

package budget

import "testing"

func TestConnectionsBelongToTheirKey(t *testing.T) {
	const limit = 512 << 20
	p := NewProcess(Limits{Process: limit})
	a, b := p.Enter(), p.Enter()
	if a.Limit() != UnauthenticatedLimit {
		t.Errorf("an unauthenticated connection may have %d", a.Limit())
	}
	a.Charge(1000)
	b.Charge(500)
	if u := p.Usage(); u.Unauthenticated != 1500 || u.Known != 0 || u.Used != 1500 || u.Limit != limit {
		t.Errorf("two unauthenticated connections: %+v", u)
	}
	if !a.Prove(Owner{Key: "shop"}) || !a.Prove(Owner{Key: "other"}) || !b.Prove(Owner{Key: "shop"}) { // the first counts
		t.Error("there is no space for two connections")
	}
	if u := p.Usage(); u.Unauthenticated != 0 || u.Known != 1500 || u.Used != 1500 {
		t.Errorf("both known: %+v", u)
	}
	if a.Limit() != limit/4 {
		t.Errorf("a connection may have %d", a.Limit())
	}
	// Half of the process for all connections of a key, and the rest for others.
	a.Charge(limit / 4)
	b.Charge(limit / 4)
	other := p.Enter()
	other.Prove(Owner{Key: "other"})
	if a.Available() > 0 || b.TryTake(1) || !other.TryTake(1000) {
		t.Error("one key has more than half, or takes the half of others")
	}
	if late := p.Enter(); late.TryTake(1) && late.Prove(Owner{Key: "shop"}) {
		t.Error("there is space for another connection of the key")
	} else {
		late.Release(1)
		late.Leave()
	}
	other.Release(1000)
	for _, m := range []*Member{a, b} {
		m.Release(m.Used())
		m.Leave()
		m.Leave()
	}
	other.Leave()
	if len(p.owners) > 0 || p.Usage().Used != 0 {
		t.Errorf("all have left: %d keys, %+v", len(p.owners), p.Usage())
	}
}

func TestUnauthenticatedPeersHaveLittle(t *testing.T) {
	p := NewProcess(Limits{Process: 1 << 30})
	var n int
	for p.Enter().TryTake(UnauthenticatedLimit) {
		n++
	}
	if n != AllUnauthenticatedLimit/UnauthenticatedLimit {
		t.Errorf("%d unauthenticated connections had space", n)
	}
	if known := p.Enter(); known.TryTake(1) {
		t.Error("another unauthenticated connection has space")
	} else if known.Prove(Owner{Key: "key"}); !known.TryTake(1 << 20) {
		t.Error("unauthenticated connections use the space of those that have logged in")
	}
}

func TestProcessWithLittleMemory(t *testing.T) {
	p := NewProcess(Limits{Process: 8 << 20})
	if p.Unauthenticated().Limit() != 2<<20 || p.Unsynced().Limit() != 4<<20 {
		t.Errorf("unauthenticated have %d, unsynced %d", p.Unauthenticated().Limit(), p.Unsynced().Limit())
	}
	if NewProcess(Limits{}).Usage().Limit <= 0 || Unlimited().Usage().Limit < 1<<60 {
		t.Error("no limit by default")
	}
}

// A sender waits for the disk, and not for memory of others. A connection that
// waits is not read from, so it could not settle its messages, and while it
// waited for the process no other charge would get any memory of the process.
func TestSendersWaitForTheDiskAlone(t *testing.T) {
	p := NewProcess(Limits{Process: 64 << 20})
	first, second, third := p.Enter(), p.Enter(), p.Enter()
	first.Prove(Owner{Key: "first"})
	second.Prove(Owner{Key: "second"})
	third.Prove(Owner{Key: "third"})
	first.Charge(27 << 20)
	second.Charge(27 << 20) // by their unsettled messages, until they are read from
	sender := p.Unsynced().Child(p.Unsynced().Limit() / 4)
	taken, synced := sender.TakeOrWait(6<<20, func() { t.Error("it was charged already") })
	if !taken || p.Usage().Waiting != 0 {
		t.Fatalf("a sender waits for %+v", p.Usage())
	}
	synced()
	if !third.TryTake(1 << 10) {
		t.Errorf("there is no space in %+v", p.Usage())
	}
	// Its own memory it does wait for.
	p.Unsynced().Charge(p.Unsynced().Limit())
	called := false
	taken, withdraw := sender.TakeOrWait(1<<20, func() { called = true })
	if taken {
		t.Errorf("it was charged in %+v", p.Usage())
	}
	p.Unsynced().Release(p.Unsynced().Limit())
	if !called {
		t.Error("the disk has caught up, and the sender waits")
	}
	withdraw()
	if u := p.Usage(); u.Unsynced != 0 || u.Used != 54<<20+1<<10 {
		t.Errorf("%+v", u)
	}
}

// A request that is still running when its connection has left may prove its
// key then: that must not leak an account.
func TestClosedConnectionProvesNothing(t *testing.T) {
	p := NewProcess(Limits{Process: 64 << 20})
	m := p.Enter()
	m.Leave()
	m.Prove(Owner{Key: "late"})
	if len(p.owners) != 0 {
		t.Errorf("%d keys have members, although no connection is left", len(p.owners))
	}
}

// A key that may manage an entity may make keys for it: they share what the entity has.
func TestKeysOfAnEntityShareItsMemory(t *testing.T) {
	const limit = 64 << 20
	p := NewProcess(Limits{Process: limit})
	var all []*Member
	used := 0
	for _, key := range []string{"a", "b", "c", "d"} {
		m := p.Enter()
		m.Prove(Owner{Key: key, Entity: "orders"})
		all = append(all, m)
		for m.TryTake(1 << 20) {
			used += 1 << 20
		}
	}
	const half = (limit - limit/8) / 2 // of what keys may have together
	if used != half {
		t.Errorf("the keys of one entity have %d bytes, want %d", used, half)
	}
	other := p.Enter()
	other.Prove(Owner{Key: "a", Entity: "invoices"})
	if !other.TryTake(limit / 8) {
		t.Error("a key of another entity has nothing")
	}
	other.Release(limit / 8)
	for _, m := range append(all, other) {
		m.Release(m.Used())
		m.Leave()
	}
	if len(p.owners) != 0 {
		t.Errorf("%d owners are left", len(p.owners))
	}
}

// Whatever some keys use, there is memory for connections, links and requests of one more, and
// what it sends does not wait for what they send.
func TestKeysLeaveMemoryForOthers(t *testing.T) {
	const limit = 64 << 20
	p := NewProcess(Limits{Process: limit})
	enter := func(key string) *Member {
		m := p.Enter()
		if m.Charge(1 << 10); !m.Prove(Owner{Key: key}) {
			t.Errorf("%s: there is no memory for a connection", key)
		}
		return m
	}
	for _, key := range []string{"first", "second", "third"} {
		if newcomer := enter(key); !newcomer.TryTake(limit/64) || !newcomer.Unsynced().TryTake(p.Unsynced().Limit()/64) {
			t.Fatalf("the others have left nothing for %s: %+v", key, p.Usage())
		}
		connections := 0
		for m := p.Enter(); ; m = p.Enter() { // as many as there may be
			if m.Charge(1 << 20); !m.Prove(Owner{Key: key}) {
				break
			}
			connections++
			for m.TryTake(1<<18) || m.TakeBeyond(1<<18) {
			}
			for m.Unsynced().TryTake(1 << 14) {
			}
			m.Unsynced().TakeOrWait(1<<14, func() {}) // and more waits
		}
		if connections == 0 {
			t.Errorf("%s has no other connection", key)
		}
	}
	if last := enter("last"); !last.TryTake(limit/64) || !last.TakeBeyond(limit/64) || !last.Unsynced().TryTake(p.Unsynced().Limit()/64) {
		t.Errorf("nothing is left: %+v", p.Usage())
	}
}

// Whatever keys use, there is memory for who logs in, and for who may manage the namespace.
func TestReserveForManagers(t *testing.T) {
	const limit = 64 << 20
	p := NewProcess(Limits{Process: limit})
	for _, key := range []string{"a", "b", "c"} {
		for range 2 {
			m := p.Enter()
			m.Prove(Owner{Key: key})
			for m.TryTake(1 << 20) {
			}
		}
	}
	newcomer := p.Enter()
	if !newcomer.TryTake(UnauthenticatedLimit) {
		t.Error("there is no memory for who logs in")
	}
	for i := 0; p.Enter().TryTake(UnauthenticatedLimit); i++ {
	}
	newcomer.Prove(Owner{Key: "root", Manager: true})
	if !newcomer.TryTake(limit/16 - UnauthenticatedLimit) {
		t.Error("there is no memory for who manages the namespace")
	}
}
