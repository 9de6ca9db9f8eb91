// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// gate counts connections. A stranger is one that has proved nothing yet. When there
// are too many strangers, or too many connections in all, a stranger is shut out: the
// oldest of the network that has the most of them. The oldest has had the longest
// time to prove itself, and who comes is never the one to go: so a client that logs
// in gets through however many others do not, be it from the same address.
type gate struct {
	maxOpen      func() int // of all connections, as things are now
	maxStrangers int        // of all networks

	mu        sync.Mutex
	open      int                        // guarded by mu
	arrived   uint64                     // connections so far; guarded by mu
	count     int                        // of strangers; guarded by mu
	strangers map[netip.Prefix][]*ticket // guarded by mu; oldest first
}

// ticket is one connection that got in.
type ticket struct {
	gate   *gate
	from   netip.Prefix
	nc     net.Conn
	number uint64 // in the order of arrival; guarded by gate.mu
	shut   bool   // it was shut out and does not count any more; guarded by gate.mu
	proved atomic.Bool
}

func newGate(maxOpen func() int, maxStrangers int) *gate {
	return &gate{maxOpen: maxOpen, maxStrangers: max(maxStrangers, 1), strangers: map[netip.Prefix][]*ticket{}}
}

// networkOf returns the network that an address is counted with: an IPv4 address by
// itself, an IPv6 address with the 64 bits that its owner was given and the other 64
// that it may choose as it likes.
func networkOf(ip netip.Addr) netip.Prefix {
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.WithZone("").Prefix(bits) // fails for no address at all: the zero Prefix
	return p
}

// enter lets a connection in; false means that there are too many altogether, all
// of which have proved something.
func (g *gate) enter(nc net.Conn) (*ticket, bool) {
	t := &ticket{gate: g, from: networkOf(ipOf(nc.RemoteAddr())), nc: nc}
	evicted, ok := g.add(t, g.maxOpen())
	if evicted != nil {
		evicted.nc.Close() // its goroutine sees that and leaves
	}
	return t, ok
}

func (g *gate) add(t *ticket, maxOpen int) (evicted *ticket, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= maxOpen || g.count >= g.maxStrangers {
		if evicted = g.leastWelcome(); evicted == nil {
			return nil, false
		}
		g.shutOut(evicted)
	}
	g.open++
	g.count++
	g.arrived++
	t.number = g.arrived
	g.strangers[t.from] = append(g.strangers[t.from], t)
	return evicted, true
}

// leastWelcome returns which stranger goes first, nil if there is none; mu is held.
func (g *gate) leastWelcome() *ticket {
	var most []*ticket
	for _, all := range g.strangers {
		if len(all) > len(most) || len(all) == len(most) && all[0].number < most[0].number {
			most = all
		}
	}
	if most == nil {
		return nil
	}
	return most[0]
}

// shutOut takes a stranger's place away; mu is held. Its goroutine may take a
// moment to leave, but its descriptor is as good as free.
func (g *gate) shutOut(t *ticket) {
	g.forget(t)
	g.open--
	t.shut = true
}

// known says that the peer has proved something.
func (t *ticket) known() {
	if t.proved.Swap(true) {
		return
	}
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.gate.forget(t)
}

// connections returns how many there are.
func (g *gate) connections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// isKnown reports whether the peer has proved something.
func (t *ticket) isKnown() bool { return t.proved.Load() }

// leave says that the connection is over.
func (t *ticket) leave() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	if t.shut {
		return
	}
	t.gate.forget(t)
	t.gate.open--
}

// forget removes t from the strangers, if it is one; mu is held.
func (g *gate) forget(t *ticket) {
	all := g.strangers[t.from]
	at := slices.Index(all, t)
	if at < 0 {
		return
	}
	g.count--
	if len(all) == 1 {
		delete(g.strangers, t.from)
		return
	}
	g.strangers[t.from] = slices.Delete(all, at, at+1)
}
