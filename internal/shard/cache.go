// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// cache keeps recent bodies in memory, first in first out, up to a number of
// bytes. Messages mostly leave soon after they came; a backlog lives on disk.
type cache struct {
	limit int
	size  int
	by    map[uint64]cached
	// order holds positions in the order of arrival; some are no longer in by.
	order []uint64
	head  int
}

type cached struct {
	msg  *message.Message
	refs int // references that may still ask for it
}

func newCache(limit int) *cache {
	return &cache{limit: limit, by: make(map[uint64]cached)}
}

// put adds a body that refs queues refer to.
func (c *cache) put(ref queue.Ref, m *message.Message, refs int) {
	if int(ref.Size) > c.limit/8 {
		return // one large body must not push out all others
	}
	c.by[ref.At] = cached{m, refs}
	c.size += int(ref.Size)
	c.order = append(c.order, ref.At)
	for c.size > c.limit && c.head < len(c.order) {
		if old, ok := c.by[c.order[c.head]]; ok {
			c.size -= old.msg.Size()
			delete(c.by, c.order[c.head])
		}
		c.head++
	}
	c.compact()
}

// compact forgets the part of order that was passed, and the positions whose
// bodies are gone once they are most of it.
func (c *cache) compact() {
	if c.head > 1024 && c.head > len(c.order)/2 || len(c.order) > 4096 && len(c.order) > 4*len(c.by) {
		kept := c.order[:0]
		for _, at := range c.order[c.head:] {
			if _, ok := c.by[at]; ok {
				kept = append(kept, at)
			}
		}
		c.order, c.head = kept, 0
	}
}

// get returns a body, nil if it is not here.
func (c *cache) get(ref queue.Ref) *message.Message {
	return c.by[ref.At].msg
}

// drop tells that one reference is gone; with the last one the body goes.
func (c *cache) drop(ref queue.Ref) {
	e, ok := c.by[ref.At]
	if !ok {
		return
	}
	if e.refs--; e.refs > 0 {
		c.by[ref.At] = e
		return
	}
	c.size -= e.msg.Size()
	delete(c.by, ref.At)
}
