// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
)

// credits are the consumers of a queue that may have credit, in the order in which they are
// served. A queue has thousands of consumers without credit: those are not looked at.
//
//	offer ──► [ c4  c1  c7  c2 ] ──► next: c1, c7, c2, c4, c1, ...
//	                 ▲ turn           one that has no credit leaves
type credits struct {
	consumers []*consumer
	turn      int // index of the consumer that is served next
}

// offer adds a consumer that got credit.
func (cs *credits) offer(c *consumer) {
	if !c.offered && c.hasCredit() {
		c.offered = true
		cs.consumers = append(cs.consumers, c)
	}
}

// next returns the consumer that is served next; nil if none has credit.
func (cs *credits) next() *consumer {
	for len(cs.consumers) > 0 {
		cs.turn %= len(cs.consumers)
		c := cs.consumers[cs.turn]
		if c.hasCredit() {
			cs.turn++
			return c
		}
		c.offered = false
		cs.consumers = slices.Delete(cs.consumers, cs.turn, cs.turn+1)
	}
	return nil
}

// back makes the last n that were served the next ones again.
func (cs *credits) back(n int) {
	if size := len(cs.consumers); size > 0 {
		cs.turn = (cs.turn + size - n%size) % size
	}
}

// hasCredit reports whether the consumer may have another message.
func (c *consumer) hasCredit() bool { return c.deliveredCount < c.limit && !c.gone }

// speaksForAll reports whether no consumer of the queue gets a message now if this one, which was
// just refused, got none: it accepts every message that there is.
func (c *consumer) speaksForAll() bool {
	w := &c.take
	if w.ReceiveAndDelete && (len(c.fetching) > 0 || c.queue.stranded > 0) {
		return false // it may have been refused for that
	}
	return w.Session == (queue.SessionLock{}) && w.AllLevels()
}

// looksPerMessage is how many consumers that get nothing are looked at in the time in which one
// message is delivered.
const looksPerMessage = 8

// look counts a consumer that got nothing against the step.
func (s *Shard) look() {
	if s.looked++; s.looked%looksPerMessage == 0 {
		s.dispatchLeft--
	}
}
