// SPDX-License-Identifier: Apache-2.0

package connlimit

import "container/list"

// Owner is whose connection it is.
type Owner struct {
	// Account is the key, or for a key of an entity that entity: who makes itself new keys gets
	// no more connections.
	Account string
	// Manager is set if the key may manage the namespace.
	Manager bool
}

// share is the connections of an account. Its fields are guarded by Limiter.mu.
type share struct {
	account string
	open    int
	idle    list.List // of *Slot: HTTP connections without a request, the longest idle first
}

// reserve is the part of all connections that is for keys that may manage the namespace: one
// in so many.
const reserve = 16

// SetAuthenticated says whose key the peer has shown, and reports whether the connection may
// stay: an account may have as many connections as are still free, the reserve apart. If it has
// too many, its longest idle one is closed. One that is refused is like an unauthenticated one
// until it has left. Only the first key counts.
func (t *Slot) SetAuthenticated(o Owner) bool {
	if t.authenticated.Load() {
		return true
	}
	closing, ok := t.limiter.own(t, o, t.limiter.capacity())
	if closing != nil {
		closing.nc.Close() // its goroutine sees that and leaves
	}
	return ok
}

func (g *Limiter) own(t *Slot, o Owner, most int) (closing *Slot, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.evicted: // it is being closed
		t.authenticated.Store(true)
		return nil, true
	case t.refused || t.share != nil:
		return nil, !t.refused
	}
	s := g.shares[o.Account]
	if s == nil {
		s = &share{account: o.Account}
	}
	if ok = o.Manager || s.open < most-most/reserve-g.owned; !ok {
		e := s.idle.Front()
		if e == nil {
			t.refused = true
			return nil, false
		}
		closing = e.Value.(*Slot)
		g.disown(closing)
		g.open--
		closing.evicted = true
	}
	g.removeUnauthenticated(t)
	t.authenticated.Store(true)
	t.share = s
	g.shares[o.Account] = s
	s.open++
	g.owned++
	return closing, true
}

// disown stops counting a connection for its account, if it has one; mu is held.
func (g *Limiter) disown(t *Slot) {
	s := t.share
	if s == nil {
		return
	}
	t.endIdle()
	t.share = nil
	g.owned--
	if s.open--; s.open == 0 {
		delete(g.shares, s.account)
	}
}

// Idle says that the connection has no request under way.
func (t *Slot) Idle() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	if t.share != nil && t.idle == nil {
		t.idle = t.share.idle.PushBack(t)
	}
}

// Busy says that it has one.
func (t *Slot) Busy() {
	t.limiter.mu.Lock()
	defer t.limiter.mu.Unlock()
	t.endIdle()
}

// endIdle takes a connection from the idle ones, if it is one; mu is held.
func (t *Slot) endIdle() {
	if t.idle != nil {
		t.share.idle.Remove(t.idle)
		t.idle = nil
	}
}
