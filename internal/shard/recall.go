// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
)

// Recaller is a Sink whose consumer keeps messages that it has not started. When a
// message of a higher level is ready and nobody has room for it, the consumer is
// asked for one of them.
type Recaller interface {
	Sink
	// Recall asks for messages back. What the consumer has not started it
	// releases, and makes room for as many; the rest it keeps. A message may be
	// asked for before it has been delivered.
	Recall(tokens []queue.Token)
}

// lent is a message in the hands of a consumer that can be asked for it.
type lent struct {
	token queue.Token
	level queue.Level
	asked bool // never twice for the same token
}

// leastTidy is how many messages a consumer has been lent before it is worth the
// while to forget those it has settled.
const leastTidy = 64

// lend notes a message that can be asked back.
func (c *Consumer) lend(s *Shard, d *queue.Delivery) {
	if len(c.lent) >= max(c.tidyAt, leastTidy) {
		c.tidy(s)
		c.tidyAt = 2 * len(c.lent)
	}
	if len(c.lent) == 0 || d.Level < c.lowest {
		c.lowest = d.Level
	}
	c.lent = append(c.lent, lent{token: d.Token, level: d.Level})
}

// tidy forgets what is settled.
func (c *Consumer) tidy(s *Shard) {
	c.lent = slices.DeleteFunc(c.lent, func(l lent) bool { return !c.slot.q.Holds(s.now, l.token) })
	c.lowest = 255
	for _, l := range c.lent {
		c.lowest = min(c.lowest, l.level)
	}
}

// recall asks for a message back, if something better waits for room. It asks once
// for each message that waits, the lowest first, of equals the one handed out last:
// it is the least likely to have been started.
func (s *Shard) recall(sl *slot) {
	if !slices.ContainsFunc(sl.consumers, func(c *Consumer) bool { return len(c.lent) > 0 }) {
		return
	}
	best, ok := sl.q.First(s.now, queue.Want{})
	if !ok {
		return
	}
	if _, asked := sl.recalled[best.Seq]; asked {
		return
	}
	c, victim := s.victim(sl, &best)
	if victim == nil {
		return
	}
	victim.asked = true
	for seq := range sl.recalled {
		if d, ok := sl.q.Lookup(seq); !ok || d.State != queue.Ready {
			delete(sl.recalled, seq)
		}
	}
	if sl.recalled == nil {
		sl.recalled = make(map[queue.SeqNo]struct{})
	}
	sl.recalled[best.Seq] = struct{}{}
	c.recaller.Recall([]queue.Token{victim.token})
}

// victim finds what to ask back for a message that waits, nil if nothing.
func (s *Shard) victim(sl *slot, best *queue.Delivery) (*Consumer, *lent) {
	var from *Consumer
	var victim *lent
	for _, c := range sl.consumers {
		if len(c.lent) == 0 || best.Level <= c.lowest || !accepts(&c.want, best.Level) {
			continue
		}
		c.tidy(s)
		for i := range slices.Backward(c.lent) {
			l := &c.lent[i]
			if !l.asked && l.level < best.Level && (victim == nil || l.level < victim.level) && sl.q.Precedes(s.now, best.Seq, l.token) {
				from, victim = c, l
			}
		}
	}
	return from, victim
}

// accepts reports whether a consumer wants messages of a level.
func accepts(w *queue.Want, l queue.Level) bool {
	return l >= w.MinLevel && (l <= w.MaxLevel || w.MaxLevel == 0 && !w.Capped)
}
