// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// cache keeps recent bodies in memory, up to a number of bytes and of bodies.
// Messages mostly leave soon after they came; a backlog lives on disk.
//
// It is a table in which each position has one place, and a newcomer takes the
// place of whoever is there: a map of as many bodies as fit into the bytes cost
// more, to keep and to collect, than reading the few that are pushed out.
type cache struct {
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

func newCache(limit int) *cache { return &cache{limit: limit} }

// of returns the place of a position. The factor, an odd one near the golden
// ratio of 64 bits, spreads positions that differ by much the same.
func (c *cache) of(at uint64) *cached {
	return &c.place[at*0x9E3779B97F4A7C15>>(64-cacheBits)]
}

// put adds a body that refs queues refer to.
func (c *cache) put(ref queue.Ref, m *message.Message, refs int) {
	if int(ref.Size) > c.limit/8 {
		return // one large body must not push out all others
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
func (c *cache) free(p *cached) {
	if p.msg != nil {
		c.size -= p.msg.Size()
		*p = cached{}
	}
}

// find returns the place of a body, nil if it is not here.
func (c *cache) find(ref queue.Ref) *cached {
	if c.place == nil {
		return nil
	}
	if p := c.of(ref.At); p.at == ref.At && p.msg != nil {
		return p
	}
	return nil
}

// get returns a body, nil if it is not here.
func (c *cache) get(ref queue.Ref) *message.Message {
	if p := c.find(ref); p != nil {
		return p.msg
	}
	return nil
}

// drop tells that one reference is gone; with the last one the body goes.
func (c *cache) drop(ref queue.Ref) {
	p := c.find(ref)
	if p == nil {
		return
	}
	if p.refs--; p.refs <= 0 {
		c.free(p)
	}
}
