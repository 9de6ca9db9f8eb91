// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/queue"
)

const (
	// memoryPiece is how much a shard takes at a time of the account that all shards share:
	// a thousand messages.
	memoryPiece = 64 << 10

	// memoryShare is how many times as much as is free a queue, or the subscriptions that a
	// topic sends to, may take. One queue may take four fifths of all, and what n queues leave
	// to the others is a (4n+1)th: a queue with few messages is not refused because of those
	// with many.
	memoryShare = 4
)

// ErrMemory means that the messages of the namespace take all the memory that there is
// for them. It is a queue.ErrFull: the sender is told what it is of a full queue.
var ErrMemory error = memoryError{}

type memoryError struct{}

func (memoryError) Error() string {
	return "queueserver: the messages that wait in the namespace take all the memory that there is for them (limits.storedMemory): " +
		"receive or purge messages of any of its queues and subscriptions, or give the broker more"
}

func (memoryError) Unwrap() error { return queue.ErrFull }

// growth is what a send is about to add to one queue.
type growth struct {
	queue *hostedQueue
	as    []queue.Arrival
}

// claim charges what a send is about to add to its queues, all of it or nothing. The end
// of the step charges what they really take.
func (o *sending) claim(s *Shard) error {
	size, most := int64(0), int64(0)
	for _, g := range s.sending.growths {
		size += g.queue.weight
		most += g.queue.q.MostGrowth(g.as)
	}
	if s.take(size, most) {
		return nil
	}
	exact := int64(0)
	for _, g := range s.sending.growths {
		switch {
		case len(g.as) == 0:
		case o.Moved && len(o.Copies) == 1: // it takes the memory of the one that it replaces
			exact += g.queue.q.GroupGrowth(g.as)
		default:
			exact += g.queue.q.Growth(g.as)
		}
	}
	switch {
	case exact == 0, s.take(size, exact): // all of them are duplicates, say
		return nil
	case o.Moved && len(o.Copies) > 1 && s.memory.TakeBeyond(exact):
		s.claimed += exact
		return nil
	}
	return ErrMemory
}

// take claims n bytes for queues that take size bytes now, if that is not too much.
func (s *Shard) take(size, n int64) bool {
	if size+n > memoryShare*(s.memoryFree-s.claimed) || !s.memory.Take(n) {
		return false
	}
	s.claimed += n
	return true
}

// weighLater has the end of the step charge what the queue takes.
func (s *Shard) weighLater(hq *hostedQueue) {
	if !hq.toWeigh {
		hq.toWeigh = true
		s.toWeigh = append(s.toWeigh, hq)
	}
}

// weighAll charges what the queues take that have changed in this step, instead of what
// their senders have claimed.
func (s *Shard) weighAll() {
	s.memory.Release(s.claimed) // first: what they really take must not be charged besides it
	s.claimed = 0
	for i, hq := range s.toWeigh {
		s.toWeigh[i] = nil
		hq.toWeigh = false
		s.weigh(hq)
	}
	s.toWeigh = s.toWeigh[:0]
}

// size is what a queue takes in memory, with the rates of its fair keys.
func (hq *hostedQueue) size() int64 {
	if hq.monitor == nil {
		return hq.q.Memory()
	}
	return hq.q.Memory() + hq.monitor.Memory()
}

// weigh charges what a queue takes now. Whatever has made it grow has happened: a lock, a
// dead letter or a message that returns is not refused.
func (s *Shard) weigh(hq *hostedQueue) {
	size := int64(0)
	if !hq.dropped() {
		size = hq.size()
	}
	if more := size - hq.weight; more > 0 {
		s.memory.Add(more)
	} else {
		s.memory.Release(-more)
	}
	hq.weight = size
}

// claimState charges the state that a session is about to get, if it has none.
func (s *Shard) claimState(q *queue.Queue, id string) bool {
	if _, ok := q.SessionState(id); ok {
		return true
	}
	return s.take(q.Memory(), queue.GroupOverhead(id, ""))
}

// claimKey charges a fair key that a stored message is about to get, if it is a new one, or new
// in its level.
func (s *Shard) claimKey(hq *hostedQueue, seq queue.SeqNo, to queue.Classification) bool {
	n := hq.q.KeyGrowth(seq, to.Key, to.Level)
	return n == 0 || s.take(hq.weight, n)
}

// claimOrder charges the memory that it takes to put the messages of queues into the orders
// that they are about to get.
func (s *Shard) claimOrder(e *entity, cfgs map[SubQueue]queue.Config) bool {
	size, n := int64(0), int64(0)
	for part, cfg := range cfgs {
		size += e.parts[part].weight
		n += e.parts[part].q.OrderGrowth(cfg)
	}
	return n == 0 || s.take(size, n)
}

// Check compares everything that the machines count with their messages, and what is
// charged for them with what they take. It visits every message: for tests.
func (s *Shard) Check() error {
	if err := s.Engine.Check(); err != nil {
		return err
	}
	charged := s.claimed
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			charged += hq.weight
			if size := hq.size(); size != hq.weight && !hq.toWeigh {
				return fmt.Errorf("part %d of %q: %d bytes are charged, it takes %d", hq.part, e.Name, hq.weight, size)
			}
		}
	}
	for _, hq := range s.toWeigh {
		if hq.dropped() {
			charged += hq.weight
		}
	}
	if used := s.memory.Used(); used != charged {
		return fmt.Errorf("%d bytes are charged, for queues that take %d", used, charged)
	}
	return nil
}
