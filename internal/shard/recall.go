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
	// releases, and makes room for as many; of the rest it says so with
	// Consumer.Keep. A message may be asked for before it has been delivered.
	Recall(tokens []queue.Token)
}

// lent is a message in the hands of a consumer that can be asked for it.
type lent struct {
	token queue.Token
	level queue.Level // when it was lent, or last looked at
	asked bool        // never twice for the same token
}

// asking is what a consumer was asked for on behalf of a message that waits.
type asking struct {
	token queue.Token
	from  *Consumer
	given bool // it came back: the room that it leaves is on its way
}

// open reports whether there is still something to expect from it.
func (a *asking) open(s *Shard) bool {
	return !a.from.gone && (a.given || a.from.queue.q.Holds(s.tx.Now(), a.token))
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

// tidy forgets what is settled, and learns what the rest is worth by now.
func (c *Consumer) tidy(s *Shard) {
	kept := c.lent[:0]
	c.lowest = 255
	for _, l := range c.lent {
		level, held := c.queue.q.HeldLevel(s.tx.Now(), l.token)
		if !held {
			continue
		}
		l.level = level
		c.lowest = min(c.lowest, level)
		kept = append(kept, l)
	}
	c.lent = kept
}

// reclassed says that messages may have other levels than when they were lent.
func (hq *hostedQueue) reclassed() {
	for _, c := range hq.consumers {
		c.lowest = 0 // has tidy look
	}
}

// recall asks for a message back, if something better waits for room: the lowest
// first, of equals the one handed out last, which is the least likely to have been
// started. For each message that waits it asks for one at a time, and for the next
// when that turns out to have been started. As no token is asked for twice, there
// are never more requests than messages that were lent.
func (s *Shard) recall(hq *hostedQueue) {
	if !slices.ContainsFunc(hq.consumers, func(c *Consumer) bool { return len(c.lent) > 0 }) {
		return
	}
	best, ok := hq.q.First(s.tx.Now(), queue.Want{})
	if !ok {
		return
	}
	if a := hq.recalled[best.Seq]; a != nil && a.open(s) {
		return
	}
	c, victim := s.victim(hq, &best)
	if victim == nil {
		return
	}
	victim.asked = true
	for seq := range hq.recalled {
		if d, ok := hq.q.Lookup(seq); !ok || d.State != queue.Ready {
			delete(hq.recalled, seq)
		}
	}
	if hq.recalled == nil {
		hq.recalled = make(map[queue.SeqNo]*asking)
	}
	hq.recalled[best.Seq] = &asking{token: victim.token, from: c}
	c.recaller.Recall([]queue.Token{victim.token})
}

// victim finds what to ask back for a message that waits, nil if nothing.
func (s *Shard) victim(hq *hostedQueue, best *queue.Delivery) (*Consumer, *lent) {
	var from *Consumer
	var victim *lent
	for _, c := range hq.consumers {
		if len(c.lent) == 0 || best.Level <= c.lowest || !accepts(&c.want, best.Level) {
			continue
		}
		c.tidy(s)
		for i := range slices.Backward(c.lent) {
			l := &c.lent[i]
			if !l.asked && l.level < best.Level && (victim == nil || l.level < victim.level) && hq.q.Precedes(s.tx.Now(), best.Seq, l.token) {
				from, victim = c, l
			}
		}
	}
	return from, victim
}

// givenBack notes that a message was released. If it was asked for, the room that
// it leaves is worth waiting for.
func (hq *hostedQueue) givenBack(t queue.Token) {
	for _, a := range hq.recalled {
		if a.token == t {
			a.given = true
		}
	}
}

// Keep answers a Recall: the consumer has started these messages and goes on with
// them. It is asked for others in their place, if there are any.
func (c *Consumer) Keep(tokens []queue.Token) error {
	return c.shard.push(&task{do: func(s *Shard) error {
		for seq, a := range c.queue.recalled {
			if a.from == c && slices.Contains(tokens, a.token) {
				delete(c.queue.recalled, seq)
				s.touch(c.queue)
			}
		}
		return nil
	}})
}

// accepts reports whether a consumer wants messages of a level.
func accepts(w *queue.Want, l queue.Level) bool {
	return l >= w.MinLevel && (l <= w.MaxLevel || w.MaxLevel == 0 && !w.Capped)
}
