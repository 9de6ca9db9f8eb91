// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
)

// Recaller is a Sink whose consumer keeps messages that it has not started. When a
// message of a higher level is ready and no consumer has credit for it, one of them is
// recalled.
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

// recall recalls a delivery if a better message waits for credit. For each message that
// waits there is one request at a time. The next follows when the consumer declines, or
// does not answer while the lock lasts.
func (s *Shard) recall(hq *hostedQueue) {
	if !slices.ContainsFunc(hq.consumers, func(c *consumer) bool { return c.outstanding.Len() > 0 }) {
		return
	}
	best, ok := hq.q.PeekNext(s.tx.Now(), queue.TakeOptions{})
	if !ok {
		return
	}
	if r := hq.recalled.Get(best.Seq); r != nil && s.consumers[r.From] != nil && s.tx.Now().Before(r.Until) && (r.Released || hq.q.LockValid(s.tx.Now(), r.Token)) {
		return // the answer is on its way
	}
	choice := recall.Choice{Queue: hq.q, Now: s.tx.Now(), For: &best}
	var from *consumer
	first := hq.recallFrom % len(hq.consumers)
	for i := range hq.consumers {
		c := hq.consumers[(first+i)%len(hq.consumers)]
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

// DeclineRecall answers a Recall: the consumer has started these messages and goes on
// with them. Others are recalled in their place, if there are any.
func (s *Shard) DeclineRecall(id ConsumerID, tokens []queue.Token) error {
	return s.withConsumer(id, func(s *Shard, c *consumer) {
		if c.queue.recalled.Decline(id, tokens) {
			s.touch(c.queue)
		}
	})
}
