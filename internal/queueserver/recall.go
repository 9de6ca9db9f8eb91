// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
)

// Recaller is a Sink whose consumer keeps messages that it has not started. One of them is
// recalled when a message of a higher level is ready and no consumer has credit for it, and
// when another consumer has credit and no message is ready for it.
type Recaller interface {
	Sink
	// Recall recalls messages. The consumer releases those that it has not started, and
	// raises its limit by as many. For the others it calls Shard.DeclineRecall. A
	// message may be recalled before it has been delivered.
	Recall(tokens []queue.Token)
}

// levelsChanged says that messages may have other levels than when they were delivered.
func (hq *hostedQueue) levelsChanged() {
	for _, c := range hq.consumers {
		c.outstanding.LevelsChanged()
	}
}

// noteRecallable notes that a consumer has a delivery that can be recalled.
func (hq *hostedQueue) noteRecallable(c *consumer) {
	if !c.recallable {
		c.recallable = true
		hq.recallable = append(hq.recallable, c)
	}
}

// recall recalls deliveries, after all that can be delivered was: for a better message that
// waits for credit, and for consumers with credit for which there is no message.
func (s *Shard) recall(hq *hostedQueue) {
	hq.recallable = slices.DeleteFunc(hq.recallable, func(c *consumer) bool {
		c.recallable = c.outstanding.Len() > 0 && !c.gone
		return !c.recallable
	})
	if len(hq.recallable) > 0 {
		s.recallForBetter(hq)
		s.recallForFree(hq)
	}
}

// recallForBetter recalls a delivery if a better message waits for credit. For each message
// that waits there is one request at a time. The next follows when the consumer declines, or
// does not answer while the lock lasts.
func (s *Shard) recallForBetter(hq *hostedQueue) {
	best, ok := hq.q.PeekNext(s.tx.Now(), queue.TakeOptions{})
	if !ok {
		return
	}
	if r := hq.recalled.Get(best.Seq); r != nil && s.consumers[r.From] != nil && s.tx.Now().Before(r.Until) && (r.Released || hq.q.LockValid(s.tx.Now(), r.Token)) {
		return // the answer is on its way
	}
	choice := recall.Choice{Queue: hq.q, Now: s.tx.Now(), For: &best}
	var from *consumer
	first := hq.recallFrom % len(hq.recallable)
	for i := range hq.recallable {
		c := hq.recallable[(first+i)%len(hq.recallable)]
		if choice.Consider(&c.outstanding, &c.take) {
			from = c
		}
	}
	if choice.Exhausted() {
		hq.recallFrom = first + 1 // others have their turn
	}
	token, ok := choice.Recall()
	if !ok {
		return
	}
	recalled, _ := hq.q.Lookup(token.Seq)
	hq.recalled.Set(best.Seq, recall.Request[ConsumerID]{Token: token, From: from.id, Until: recalled.LockedUntil}, func(seq queue.SeqNo) bool {
		d, ok := hq.q.Lookup(seq)
		return ok && d.State == queue.Ready
	})
	from.recaller.Recall([]queue.Token{token})
}

// mostFree is how many consumers with credit are considered in one step.
const mostFree = 16

// recallForFree recalls deliveries that were not started for consumers with credit. One that
// fetches ahead itself is not considered: its credit does not say that it can start a message.
// For each consumer there is one request at a time.
func (s *Shard) recallForFree(hq *hostedQueue) {
	considered := 0
	for i := range hq.credits.consumers {
		// From the one that is served next, so that all have their turn.
		c := hq.credits.consumers[(hq.credits.turn+i)%len(hq.credits.consumers)]
		if !s.isFree(c) {
			continue
		}
		if considered == 0 && (hq.q.Config().ReceivePaused || rated(hq)) {
			return
		}
		if considered++; considered > mostFree {
			return
		}
		if r := &c.request; s.consumers[r.From] != nil && s.tx.Now().Before(r.Until) && hq.q.LockValid(s.tx.Now(), r.Token) {
			continue // the answer is on its way
		}
		c.request = recall.Request[ConsumerID]{}
		s.recallFor(c)
	}
}

// isFree reports whether a consumer waits for a message that it can start.
func (s *Shard) isFree(c *consumer) bool {
	return c.recaller == nil && !c.internal && !c.probing && !c.draining && !c.leaving && c.deliveredCount < c.limit &&
		c.take.Session == (queue.SessionLock{})
}

// rated reports whether fair keys of a queue have rates. A message that is delivered again
// would use the rate twice.
func rated(hq *hostedQueue) bool {
	o := hq.q.Config().Order
	return o.Fair && (o.DefaultShare.Rate > 0 || slices.ContainsFunc(o.Shares, func(s queue.Share) bool { return s.Rate > 0 }))
}

// mostSearched is how many consumers are searched for a delivery to recall for one with credit.
const mostSearched = 8

// recallFor recalls a delivery for a consumer with credit: of the consumer that has the most,
// or if that has none which this one takes, of others.
func (s *Shard) recallFor(c *consumer) {
	hq := c.queue
	most := 0
	for i, o := range hq.recallable {
		if o.outstanding.Len() > hq.recallable[most].outstanding.Len() {
			most = i
		}
	}
	searched := 0
	for i := range hq.recallable {
		from := hq.recallable[(most+i)%len(hq.recallable)]
		if from.outstanding.Len() == 0 {
			continue
		}
		if searched++; searched > mostSearched {
			break
		}
		if token, ok := from.outstanding.Last(hq.q, s.tx.Now(), &c.take); ok {
			recalled, _ := hq.q.Lookup(token.Seq)
			c.request = recall.Request[ConsumerID]{Token: token, From: from.id, Until: recalled.LockedUntil}
			hq.recalledForFree = true
			from.recaller.Recall([]queue.Token{token})
			return
		}
	}
}

// serveFirst gives the next turn to the consumer for which a message was released.
func (s *Shard) serveFirst(hq *hostedQueue, t queue.Token) {
	if !hq.recalledForFree {
		return
	}
	at := slices.IndexFunc(hq.credits.consumers, func(c *consumer) bool { return c.request.Token == t })
	if at >= 0 {
		hq.credits.turn = at
		hq.credits.consumers[at].request = recall.Request[ConsumerID]{}
	}
}

// DeclineRecall answers a Recall: the consumer has started these messages and goes on
// with them. Others are recalled in their place, if there are any.
func (s *Shard) DeclineRecall(id ConsumerID, tokens []queue.Token) error {
	return s.withConsumer(id, func(s *Shard, c *consumer) {
		declined := c.queue.recalled.Decline(id, tokens)
		for _, o := range c.queue.credits.consumers {
			if o.request.From == id && slices.Contains(tokens, o.request.Token) {
				o.request, declined = recall.Request[ConsumerID]{}, true
			}
		}
		if declined {
			s.touch(c.queue)
		}
	})
}
