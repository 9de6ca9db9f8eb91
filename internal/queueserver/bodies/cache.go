// SPDX-License-Identifier: Apache-2.0

package bodies

import (
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Cache keeps recent bodies in memory, up to a number of bytes and of bodies.
// Most messages are delivered soon after they arrive; a backlog is read from disk.
//
// It is a table in which each position has one place. A new body replaces the one
// in its place. A map of as many bodies costs more, to keep and to collect, than
// reading the few bodies that are replaced.
type Cache struct {
	limit int
	size  int      // bytes of the bodies in places
	place []cached // made by the first put
	hand  int      // where the next search for something to evict begins
}

type cached struct {
	at   uint64
	msg  *message.Message // nil if the place is free
	refs int              // references that may still ask for it
}

// cacheBits is how many bits choose a place: 32,768 of them.
const cacheBits = 15

// NewCache returns an empty cache that keeps up to limit bytes.
func NewCache(limit int) *Cache { return &Cache{limit: limit} }

// of returns the place of a position. The factor, an odd one near the golden
// ratio of 64 bits, spreads positions that differ by much the same.
func (c *Cache) of(at uint64) *cached {
	return &c.place[at*0x9E3779B97F4A7C15>>(64-cacheBits)]
}

// Put adds a body that refs queues refer to.
func (c *Cache) Put(ref queue.Ref, m *message.Message, refs int) {
	if int(ref.Size) > c.limit/8 {
		return // one large body must not replace all others
	}
	if c.place == nil {
		c.place = make([]cached, 1<<cacheBits)
	}
	p := c.of(ref.At)
	c.free(p)
	*p = cached{ref.At, m, refs}
	for c.size += m.Size(); c.size > c.limit; c.hand = (c.hand + 1) % len(c.place) {
		c.free(&c.place[c.hand])
	}
}

// free empties a place.
func (c *Cache) free(p *cached) {
	if p.msg != nil {
		c.size -= p.msg.Size()
		*p = cached{}
	}
}

// find returns the place of a body, nil if it is not cached.
func (c *Cache) find(ref queue.Ref) *cached {
	if c.place == nil {
		return nil
	}
	if p := c.of(ref.At); p.at == ref.At && p.msg != nil {
		return p
	}
	return nil
}

// Get returns a body, nil if it is not cached.
func (c *Cache) Get(ref queue.Ref) *message.Message {
	if p := c.find(ref); p != nil {
		return p.msg
	}
	return nil
}

// Drop removes one reference to a body, and the body with the last one.
func (c *Cache) Drop(ref queue.Ref) {
	p := c.find(ref)
	if p == nil {
		return
	}
	if p.refs--; p.refs <= 0 {
		c.free(p)
	}
}
