// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// Limiter bounds the number of connections, of all peers and of each account. Above a limit it closes one whose peer
// has not authenticated itself: the oldest one of the network that has the most of
// them, and first those that say nothing. The oldest one has had the longest time to authenticate, and the new one is
// never closed. So a client that logs in gets through, however many others do not,
// even from the same address.
type Limiter struct {
	capacity           func() int  // of all connections, as things are now
	crowded            func() bool // see New
	maxUnauthenticated int         // of all networks

	mu              sync.Mutex
	open            int                      // guarded by mu
	arrived         uint64                   // connections so far; guarded by mu
	count           int                      // of unauthenticated peers; guarded by mu
	unauthenticated map[netip.Prefix][]*Slot // guarded by mu; oldest first
	shares          map[string]*share        // guarded by mu; by account
	owned           int                      // authenticated connections; guarded by mu
}

// Slot is one connection that was accepted.
type Slot struct {
	limiter       *Limiter
	from          netip.Prefix
	nc            net.Conn
	number        uint64      // in the order of arrival; guarded by limiter.mu
	evicted       bool        // it was closed and does not count any more; guarded by limiter.mu
	spoke         atomic.Bool // the peer has said something
	authenticated atomic.Bool
	refused       bool          // its account has too many; guarded by limiter.mu
	share         *share        // of its account, nil until it is authenticated; guarded by limiter.mu
	idle          *list.Element // of share.idle, nil if it is not idle; guarded by limiter.mu
}

// New returns a limiter of as many connections as capacity says at that time. While it is
// crowded, an unauthenticated connection makes way for each that comes.
func New(capacity func() int, crowded func() bool, maxUnauthenticated int) *Limiter {
	return &Limiter{capacity: capacity, crowded: crowded, maxUnauthenticated: max(maxUnauthenticated, 1),
		unauthenticated: map[netip.Prefix][]*Slot{}, shares: map[string]*share{}}
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

// Enter accepts a connection; false means that there are too many, all of them
// authenticated.
func (g *Limiter) Enter(nc net.Conn) (*Slot, bool) {
	t := &Slot{limiter: g, from: networkOf(ipOf(nc.RemoteAddr())), nc: nc}
	most := g.capacity()
	if g.crowded() {
		most = 0
	}
	evicted, ok := g.add(t, most)
	if evicted != nil {
		evicted.nc.Close() // its goroutine sees that and leaves
	}
	return t, ok
}

func (g *Limiter) add(t *Slot, maxOpen int) (evicted *Slot, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= maxOpen || g.count >= g.maxUnauthenticated {
		if evicted = g.evictionCandidate(t.from); evicted == nil {
			return nil, false
		}
		g.evict(evicted)
	}
	g.open++
	g.count++
	g.arrived++
	t.number = g.arrived
	g.unauthenticated[t.from] = append(g.unauthenticated[t.from], t)
	return evicted, true
}

// evictionCandidate returns which unauthenticated peer goes first for one that comes from a
// network, nil if there is none: the oldest of the network with the most of them. One that has had
// time to say something and has not goes before those that are logging in, unless its network has
// less than half as many as that one, or as the one that comes would have; mu is held.
func (g *Limiter) evictionCandidate(from netip.Prefix) *Slot {
	var most []*Slot
	for _, all := range g.unauthenticated {
		if len(all) > len(most) || len(all) == len(most) && all[0].number < most[0].number {
			most = all
		}
	}
	if most == nil {
		return nil
	}
	first, silent := most[0], 0
	limit := max(len(most), len(g.unauthenticated[from])+1)
	for _, all := range g.unauthenticated {
		if 2*len(all) < limit {
			continue
		}
		oldest, n := g.silent(all)
		if n > silent || n > 0 && n == silent && oldest.number < first.number {
			first, silent = oldest, n
		}
	}
	return first
}

// silent returns the oldest of those that have said nothing though half as many as there may be
// have come after them, and how many those are; mu is held.
func (g *Limiter) silent(all []*Slot) (oldest *Slot, n int) {
	for _, t := range all {
		if g.arrived-t.number < uint64(g.maxUnauthenticated/2) {
			break // the others are newer
		}
		if t.spoke.Load() {
			continue
		}
		if n++; oldest == nil {
			oldest = t
		}
	}
	return oldest, n
}

// Spoke says that the peer has said what it speaks.
func (t *Slot) Spoke() { t.spoke.Store(true) }

// evict stops counting a connection; mu is held. Its goroutine may take a
// moment to leave, but its descriptor is as good as free.
func (g *Limiter) evict(t *Slot) {
	g.removeUnauthenticated(t)
	g.open--
	t.evicted = true
}

// Open returns how many there are.
func (g *Limiter) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Max returns how many there may be.
func (g *Limiter) Max() int { return g.capacity() }

// IsAuthenticated reports whether the peer has.
func (t *Slot) IsAuthenticated() bool { return t.authenticated.Load() }

// Leave says that the connection is over.
func (t *Slot) Leave() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	if t.evicted {
		return
	}
	t.limiter.removeUnauthenticated(t)
	t.limiter.disown(t)
	t.limiter.open--
}

// removeUnauthenticated removes t from the unauthenticated peers, if it is one; mu is held.
func (g *Limiter) removeUnauthenticated(t *Slot) {
	all := g.unauthenticated[t.from]
	at := slices.Index(all, t)
	if at < 0 {
		return
	}
	g.count--
	if len(all) == 1 {
		delete(g.unauthenticated, t.from)
		return
	}
	g.unauthenticated[t.from] = slices.Delete(all, at, at+1)
}
