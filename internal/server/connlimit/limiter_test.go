// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"fmt"
	"math"
	"net"
	"testing"
)

// from is a connection from an address that records whether it was closed.
type from struct {
	net.Conn
	ip     string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

// never says that it is not crowded.
func never() bool { return false }

// entering lets connections in and fails the test if one is not.
func entering(t *testing.T, g *Limiter) func(ip string) (*from, *Slot) {
	return func(ip string) (*from, *Slot) {
		t.Helper()
		c := &from{ip: ip}
		x, ok := g.Enter(c)
		if !ok {
			t.Fatalf("%s was not accepted", ip)
		}
		return c, x
	}
}

// When there are too many unauthenticated peers, the oldest of the
// network with the most of them goes, and never who has just come.
func TestGate(t *testing.T) {
	g := New(func() int { return 100 }, never, 3)
	enter := entering(t, g)
	first, _ := enter("10.0.0.1")
	second, secondTicket := enter("::ffff:10.0.0.1") // the same address, written otherwise
	elsewhere, _ := enter("10.0.0.2")
	third, thirdTicket := enter("10.0.0.1")
	if !first.closed || second.closed || third.closed || elsewhere.closed {
		t.Errorf("closed: first %v, second %v, third %v, elsewhere %v; want the first alone",
			first.closed, second.closed, third.closed, elsewhere.closed)
	}
	secondTicket.SetAuthenticated(Owner{Manager: true})
	thirdTicket.SetAuthenticated(Owner{Manager: true})
	for range 3 {
		enter("10.0.0.3")
	}
	if second.closed || third.closed {
		t.Error("who is known still counts as an unauthenticated peer")
	}
	if g.count != 3 || g.open != 5 {
		t.Errorf("%d unauthenticated peers of %d connections, want 3 of 5", g.count, g.open)
	}
}

// Number 8: who can choose among 2^64 addresses is counted once.
func TestGateCountsNetworksOfIPv6(t *testing.T) {
	g := New(func() int { return 100 }, never, 10)
	enter := entering(t, g)
	victim, _ := enter("2001:db8:0:1::1")
	for i := range 100 {
		enter(fmt.Sprintf("2001:db8:0:2::%x", i+1))
	}
	if victim.closed {
		t.Error("a connection was shut out by a hundred of another network")
	}
	if n := len(g.unauthenticated); n != 2 {
		t.Errorf("%d networks, want 2", n)
	}
}

// Number 8, with its figures: from a hundred addresses come a hundred connections each
// that say eight bytes. A connection that comes then stays until as many others have come, also
// from one of those addresses.
func TestGateKeepsWhoLogsIn(t *testing.T) {
	g := New(func() int { return 10_000 }, never, 768)
	enter := entering(t, g)
	crowd := func(n int) {
		for i := range n {
			enter(fmt.Sprintf("127.0.1.%d", i%100))
		}
	}
	crowd(10_000)
	for i := range 20 {
		c, x := enter(fmt.Sprintf("127.0.1.%d", i)) // where unauthenticated peers are, too
		crowd(500)                                  // while it logs in
		if c.closed {
			t.Fatalf("client %d was shut out before it could log in", i)
		}
		x.SetAuthenticated(Owner{Manager: true})
		crowd(1000)
		if c.closed {
			t.Fatalf("client %d was shut out after it had logged in", i)
		}
	}
}

// The number of connections is bounded by the
// descriptors there are. Unauthenticated peers give way to who comes; who is known does not.
func TestFullGate(t *testing.T) {
	limit := 4
	g := New(func() int { return limit }, never, 100)
	enter := entering(t, g)
	alone, aloneTicket := enter("10.0.0.1")
	oldest, oldestTicket := enter("10.0.0.2")
	_, second := enter("10.0.0.2")
	enter("10.0.0.2")
	_, third := enter("10.0.0.3")
	if !oldest.closed || alone.closed {
		t.Errorf("closed: oldest %v, alone %v; want the oldest of the address with the most unauthenticated peers", oldest.closed, alone.closed)
	}
	if g.open != 4 {
		t.Errorf("%d connections count, want 4", g.open)
	}
	oldestTicket.SetAuthenticated(Owner{Manager: true}) // too late
	oldestTicket.Leave()
	if g.open != 4 {
		t.Errorf("after the one that was shut out has left, %d count, want 4", g.open)
	}
	for _, x := range []*Slot{third, aloneTicket, second} {
		x.SetAuthenticated(Owner{Manager: true})
	}
	_, last := enter("10.0.0.4") // in place of the last unauthenticated peer
	last.SetAuthenticated(Owner{Manager: true})
	if _, ok := g.Enter(&from{ip: "10.0.0.5"}); ok {
		t.Error("more than the limit were accepted")
	}
	limit = 5
	enter("10.0.0.5")
}

// Connections that say nothing come from so many addresses that each has few. Who is logging in,
// even from an address with one more, stays as long as it takes; who is slow to begin has the time
// in which half as many come as there may be.
func TestSilentPeersGoBeforeThoseThatLogIn(t *testing.T) {
	const most = 768
	g := New(func() int { return 10_000 }, never, most)
	enter := entering(t, g)
	n := 0
	flood := func(count int, speak bool) {
		for range count {
			n++
			if _, x := enter(fmt.Sprintf("127.0.%d.%d", 10+n/250%8, 1+n%250)); speak {
				x.Spoke()
			}
		}
	}
	flood(2*most, false)
	for range 2 {
		c, x := enter("10.0.0.1")
		flood(most/2-1, false)
		if c.closed {
			t.Fatal("a client was shut out before its first bytes came")
		}
		x.Spoke()
		flood(10*most, false)
		if c.closed {
			t.Fatal("a client that is logging in was shut out by connections that say nothing")
		}
	}
	// Those that speak shut out nobody who has just come.
	flood(2*most, true)
	c, x := enter("10.0.0.2")
	flood(most/2-1, true)
	x.Spoke()
	flood(most/4, true)
	if c.closed {
		t.Error("a client that is logging in was shut out by newer ones")
	}
	// An address with many makes no room by those of others.
	quiet, _ := enter("10.0.0.3")
	for range 3 * most {
		_, x := enter("10.0.0.4")
		x.Spoke()
	}
	if quiet.closed {
		t.Error("a client that says nothing yet was shut out by many of one address")
	}
}

func TestConnectionLimit(t *testing.T) {
	for _, tt := range []struct{ configured, files, segments, want int }{
		{10_000, math.MaxInt, 50, 10_000},
		{10_000, 20_000, 50, 10_000},
		{10_000, 1024, 4, 764},
		{10_000, 1024, 600, 168},
		{100, 1024, 4, 100},
		{10_000, 128, 4, 60},
		{10_000, 32, 4, 12},
		{10_000, 1024, 2000, 1},
	} {
		if got := Connections(tt.configured, tt.files, tt.segments); got != tt.want {
			t.Errorf("%d wanted, %d descriptors, %d segments: %d connections, want %d", tt.configured, tt.files, tt.segments, got, tt.want)
		}
	}
}
