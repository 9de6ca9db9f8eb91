// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// gate counts connections. A stranger is one that has proved nothing yet. When an
// address has too many strangers, or when there are too many connections in all, a
// stranger is shut out: the oldest that has not said a word, or else the oldest. So
// a client that logs in gets through however many others do not.
type gate struct {
	maxOpen      func() int // of all connections, as things are now
	maxStrangers int        // of one address

	mu        sync.Mutex
	open      int                      // guarded by mu
	arrived   uint64                   // connections so far; guarded by mu
	strangers map[netip.Addr][]*ticket // guarded by mu; oldest first
}

// ticket is one connection that got in.
type ticket struct {
	gate   *gate
	ip     netip.Addr
	nc     net.Conn
	number uint64 // in the order of arrival; guarded by gate.mu
	spoke  bool   // guarded by gate.mu
	shut   bool   // it was shut out and does not count any more; guarded by gate.mu
}

func newGate(maxOpen func() int, maxStrangers int) *gate {
	return &gate{maxOpen: maxOpen, maxStrangers: maxStrangers, strangers: map[netip.Addr][]*ticket{}}
}

// enter lets a connection in; false means that there are too many altogether, all
// of which have proved something.
func (g *gate) enter(nc net.Conn) (*ticket, bool) {
	t := &ticket{gate: g, ip: ipOf(nc.RemoteAddr()), nc: nc}
	evicted, ok := g.add(t, g.maxOpen())
	if evicted != nil {
		evicted.nc.Close() // its goroutine sees that and leaves
	}
	return t, ok
}

func (g *gate) add(t *ticket, maxOpen int) (evicted *ticket, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= maxOpen {
		if evicted = g.leastWelcome(); evicted == nil {
			return nil, false
		}
		g.shutOut(evicted)
	}
	g.open++
	g.arrived++
	t.number = g.arrived
	g.strangers[t.ip] = append(g.strangers[t.ip], t)
	if all := g.strangers[t.ip]; evicted == nil && len(all) > g.maxStrangers {
		evicted = first(all)
		g.shutOut(evicted)
	}
	return evicted, true
}

// first returns which stranger of an address goes first.
func first(all []*ticket) *ticket {
	silent := slices.IndexFunc(all, func(o *ticket) bool { return !o.spoke })
	return all[max(0, silent)]
}

// leastWelcome returns which stranger of all goes first, nil if there is none; mu
// is held. The address with the most strangers has to give one up.
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
	return first(most)
}

// shutOut takes a stranger's place away; mu is held. Its goroutine may take a
// moment to leave, but its descriptor is as good as free.
func (g *gate) shutOut(t *ticket) {
	g.forget(t)
	g.open--
	t.shut = true
}

// speaks says that the peer has said what it speaks.
func (t *ticket) speaks() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.spoke = true
}

// known says that the peer has proved something.
func (t *ticket) known() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.gate.forget(t)
}

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
	rest := slices.DeleteFunc(g.strangers[t.ip], func(o *ticket) bool { return o == t })
	if len(rest) == 0 {
		delete(g.strangers, t.ip)
		return
	}
	g.strangers[t.ip] = rest
}
