// SPDX-License-Identifier: Apache-2.0

package queueserver

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

// outstanding is a delivery, not settled as far as is known, of a consumer that gives
// messages back.
type outstanding struct {
	token    queue.Token
	level    queue.Level // when it was delivered, or last looked at
	recalled bool        // never twice for the same token
}

// recallRequest is what a consumer was asked for on behalf of a message that waits.
type recallRequest struct {
	token    queue.Token
	from     *Consumer
	released bool // it was released: the consumer's next credit is on its way
}

// open reports whether there is still something to expect from it.
func (a *recallRequest) open(s *Shard) bool {
	return !a.from.gone && (a.released || a.from.queue.q.LockValid(s.tx.Now(), a.token))
}

// minPrune is how many outstanding deliveries a consumer has at least before those
// that it has settled are looked for.
const minPrune = 64

// addOutstanding notes a delivery that can be recalled.
func (c *Consumer) addOutstanding(s *Shard, d *queue.Delivery) {
	if len(c.outstanding) >= max(c.pruneAt, minPrune) {
		c.pruneSettled(s)
		c.pruneAt = 2 * len(c.outstanding)
	}
	if len(c.outstanding) == 0 || d.Level < c.lowestLevel {
		c.lowestLevel = d.Level
	}
	c.outstanding = append(c.outstanding, outstanding{token: d.Token, level: d.Level})
}

// pruneSettled forgets the deliveries that are settled, and updates the level of the
// others.
func (c *Consumer) pruneSettled(s *Shard) {
	kept := c.outstanding[:0]
	c.lowestLevel = 255
	for _, l := range c.outstanding {
		level, held := c.queue.q.LockedLevel(s.tx.Now(), l.token)
		if !held {
			continue
		}
		l.level = level
		c.lowestLevel = min(c.lowestLevel, level)
		kept = append(kept, l)
	}
	c.outstanding = kept
}

// levelsChanged says that messages may have other levels than when they were delivered.
func (hq *hostedQueue) levelsChanged() {
	for _, c := range hq.consumers {
		c.lowestLevel = 0 // has recallCandidate look
	}
}

// recall asks for a message back, if something better waits for room: the lowest
// first, of equals the one handed out last, which is the least likely to have been
// started. For each message that waits it asks for one at a time, and for the next
// when that turns out to have been started. As no token is asked for twice, there
// are never more requests than outstanding deliveries.
func (s *Shard) recall(hq *hostedQueue) {
	if !slices.ContainsFunc(hq.consumers, func(c *Consumer) bool { return len(c.outstanding) > 0 }) {
		return
	}
	best, ok := hq.q.PeekNext(s.tx.Now(), queue.TakeOptions{})
	if !ok {
		return
	}
	if a := hq.recalled[best.Seq]; a != nil && a.open(s) {
		return
	}
	c, candidate := s.recallCandidate(hq, &best)
	if candidate == nil {
		return
	}
	candidate.recalled = true
	for seq := range hq.recalled {
		if d, ok := hq.q.Lookup(seq); !ok || d.State != queue.Ready {
			delete(hq.recalled, seq)
		}
	}
	if hq.recalled == nil {
		hq.recalled = make(map[queue.SeqNo]*recallRequest)
	}
	hq.recalled[best.Seq] = &recallRequest{token: candidate.token, from: c}
	c.recaller.Recall([]queue.Token{candidate.token})
}

// recallCandidate finds what to recall for a message that waits, nil if nothing.
func (s *Shard) recallCandidate(hq *hostedQueue, best *queue.Delivery) (*Consumer, *outstanding) {
	var from *Consumer
	var candidate *outstanding
	for _, c := range hq.consumers {
		if len(c.outstanding) == 0 || best.Level <= c.lowestLevel || !accepts(&c.take, best.Level) {
			continue
		}
		c.pruneSettled(s)
		for i := range slices.Backward(c.outstanding) {
			l := &c.outstanding[i]
			if !l.recalled && l.level < best.Level && (candidate == nil || l.level < candidate.level) && hq.q.Precedes(s.tx.Now(), best.Seq, l.token) {
				from, candidate = c, l
			}
		}
	}
	return from, candidate
}

// noteReleased notes that a message was released. If it was recalled, its consumer is
// about to have credit for another.
func (hq *hostedQueue) noteReleased(t queue.Token) {
	for _, a := range hq.recalled {
		if a.token == t {
			a.released = true
		}
	}
}

// Keep answers a Recall: the consumer has started these messages and goes on with
// them. It is asked for others in their place, if there are any.
func (c *Consumer) DeclineRecall(tokens []queue.Token) error {
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
func accepts(w *queue.TakeOptions, l queue.Level) bool {
	return l >= w.MinLevel && (l <= w.MaxLevel || w.MaxLevel == 0 && !w.HasMaxLevel)
}
