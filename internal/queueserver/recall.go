// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
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

// levelsChanged says that messages may have other levels than when they were delivered.
func (hq *hostedQueue) levelsChanged() {
	for _, c := range hq.consumers {
		c.outstanding.LevelsChanged()
	}
}

// recall recalls a delivery if a better message waits for credit. For each message that
// waits there is one request at a time. The next follows when the consumer declines.
func (s *Shard) recall(hq *hostedQueue) {
	if !slices.ContainsFunc(hq.consumers, func(c *Consumer) bool { return c.outstanding.Len() > 0 }) {
		return
	}
	best, ok := hq.q.PeekNext(s.tx.Now(), queue.TakeOptions{})
	if !ok {
		return
	}
	if r := hq.recalled.Get(best.Seq); r != nil && !r.From.gone && (r.Released || hq.q.LockValid(s.tx.Now(), r.Token)) {
		return // the answer is on its way
	}
	choice := recall.Choice{Queue: hq.q, Now: s.tx.Now(), For: &best}
	var from *Consumer
	for _, c := range hq.consumers {
		if choice.Consider(&c.outstanding, &c.take) {
			from = c
		}
	}
	token, ok := choice.Recall()
	if !ok {
		return
	}
	hq.recalled.Set(best.Seq, recall.Request[*Consumer]{Token: token, From: from}, func(seq queue.SeqNo) bool {
		d, ok := hq.q.Lookup(seq)
		return ok && d.State == queue.Ready
	})
	from.recaller.Recall([]queue.Token{token})
}

// DeclineRecall answers a Recall: the consumer has started these messages and goes on
// with them. Others are recalled in their place, if there are any.
func (c *Consumer) DeclineRecall(tokens []queue.Token) error {
	return c.shard.push(&task{do: func(s *Shard) error {
		if c.queue.recalled.Decline(c, tokens) {
			s.touch(c.queue)
		}
		return nil
	}})
}
