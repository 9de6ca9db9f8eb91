// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// gate counts connections. A stranger is one that has proved nothing yet; when an
// address has too many, one is shut out: the oldest that has not said a word, or
// else the oldest. So a client which speaks gets through however many others of
// its address stay silent.
type gate struct {
	maxOpen, maxStrangers int

	mu        sync.Mutex
	open      int                      // guarded by mu
	strangers map[netip.Addr][]*ticket // guarded by mu; oldest first
}

// ticket is one connection that got in.
type ticket struct {
	gate  *gate
	ip    netip.Addr
	nc    net.Conn
	spoke bool // guarded by gate.mu
}

func newGate(maxOpen, maxStrangers int) *gate {
	return &gate{maxOpen: maxOpen, maxStrangers: maxStrangers, strangers: map[netip.Addr][]*ticket{}}
}

// enter lets a connection in; false means that there are too many altogether.
func (g *gate) enter(nc net.Conn) (*ticket, bool) {
	t := &ticket{gate: g, ip: ipOf(nc.RemoteAddr()), nc: nc}
	evicted, ok := g.add(t)
	if evicted != nil {
		evicted.nc.Close() // its goroutine sees that and leaves
	}
	return t, ok
}

func (g *gate) add(t *ticket) (evicted *ticket, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.maxOpen {
		return nil, false
	}
	g.open++
	g.strangers[t.ip] = append(g.strangers[t.ip], t)
	if all := g.strangers[t.ip]; len(all) > g.maxStrangers {
		silent := slices.IndexFunc(all, func(o *ticket) bool { return !o.spoke })
		evicted = all[max(0, silent)]
		g.forget(evicted)
	}
	return evicted, true
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
