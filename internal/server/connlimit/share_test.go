// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"testing"
)

// login lets a connection in that shows a key.
func login(t *testing.T, g *Limiter, o Owner) (c *from, x *Slot, ok bool) {
	t.Helper()
	c, x = entering(t, g)("10.0.0.1")
	return c, x, x.SetAuthenticated(o)
}

// An account has as many connections as are free. So whatever some have, there are some for
// others, and the reserve for who manages the namespace.
func TestAccountsLeaveConnectionsForOthers(t *testing.T) {
	const most = 1600
	g := New(func() int { return most }, never, most)
	had := most / reserve
	for i := range 20 {
		o := Owner{Account: fmt.Sprint("key ", i)}
		n := 0
		for {
			_, x, ok := login(t, g, o)
			if !ok {
				x.Leave()
				break
			}
			n++
		}
		if want := (most - had + 1) / 2; i < 8 && n != want {
			t.Errorf("%s has %d connections, want %d", o.Account, n, want)
		}
		had += n
	}
	for i := range most / reserve {
		if _, _, ok := login(t, g, Owner{Account: "root", Manager: true}); !ok {
			t.Fatalf("connection %d of root was refused", i)
		}
	}
}

// The longest idle connection of an account makes way for a new one of that account, and for
// no other.
func TestIdleConnectionsGoFirst(t *testing.T) {
	g := New(func() int { return 32 }, never, 32)
	o, other := Owner{Account: "a"}, Owner{Account: "b"}
	elsewhere, x, _ := login(t, g, other)
	x.Idle()
	var cs []*from
	var xs []*Slot
	for {
		c, x, ok := login(t, g, o)
		if !ok {
			x.Leave()
			break
		}
		cs, xs = append(cs, c), append(xs, x)
	}
	xs[3].Idle()
	xs[1].Idle()
	xs[5].Idle()
	xs[3].Busy()
	open := g.Open()
	if _, _, ok := login(t, g, o); !ok || !cs[1].closed || elsewhere.closed {
		t.Errorf("accepted %v, closed %v; want the longest idle one to make way", ok, cs[1].closed)
	}
	if _, _, ok := login(t, g, o); !ok || !cs[5].closed {
		t.Errorf("accepted %v, closed %v; want the next to make way", ok, cs[5].closed)
	}
	if g.Open() != open {
		t.Errorf("%d connections count, want %d", g.Open(), open)
	}
	_, last, ok := login(t, g, o)
	if ok || last.SetAuthenticated(other) {
		t.Error("more connections were accepted than are free for others")
	}
	last.Leave()
	for _, x := range xs {
		x.Idle()
		x.Leave()
	}
	if n := g.shares["a"].open; n != 2 {
		t.Errorf("the account has %d connections, want 2", n)
	}
}

// Few connections are better than none.
func TestShareOfOne(t *testing.T) {
	g := New(func() int { return 1 }, never, 1)
	_, x, ok := login(t, g, Owner{Account: "a"})
	if !ok {
		t.Error("the only connection was refused")
	}
	x.Leave()
	if _, _, ok := login(t, g, Owner{Account: "b"}); !ok {
		t.Error("the only connection was refused to the next")
	}
}
