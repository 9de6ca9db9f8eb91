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

// What is stored may grow, and is not refused: locks, reasons of dead letters, messages that
// return. So a part of the memory, Options.Reserve, is not for every send. When the rest is used
// up, a queue may take of it what is free there, if it has no more than that in all: the
// first one half, the next one half of what is left. A queue that has grown gets nothing of it.

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
	bytes int64 // that the queue grows by, once claim has counted them
}

// claim charges what a send is about to add to its queues, all of it or nothing. The end
// of the step charges what they really take.
func (o *sending) claim(s *Shard) error {
	size, most := int64(0), int64(0)
	for _, g := range s.sending.growths {
		size += g.queue.entity.weight()
		most += g.queue.q.MostGrowth(g.as)
	}
	if s.take(size, most) {
		return nil
	}
	exact := int64(0)
	for i := range s.sending.growths {
		g := &s.sending.growths[i]
		switch {
		case len(g.as) == 0:
		case o.replaces():
			g.bytes = g.queue.q.GroupGrowth(g.as)
		default:
			g.bytes = g.queue.q.Growth(g.as)
		}
		exact += g.bytes
	}
	switch {
	case exact == 0, s.take(size, exact): // all of them are duplicates, say
	case s.takeReserved(size, exact):
		for _, g := range s.sending.growths {
			g.queue.entity.reserved += g.bytes
		}
	case o.Moved && len(o.Copies) > 1 && s.memory.TakeBeyond(exact):
		s.claimed += exact
	default:
		return ErrMemory
	}
	if o.replaces() {
		s.moveReserved(o)
	}
	return nil
}

// replaces reports whether the message takes the memory of one that is settled with it.
func (o *sending) replaces() bool {
	return o.Moved && len(o.Copies) == 1 && o.Settle != (Locked{})
}

// take claims n bytes for entities that take size bytes now, if that is not too much.
func (s *Shard) take(size, n int64) bool {
	if size+n > memoryShare*(s.memoryFree-s.opts.Reserve.Limit()-s.claimed) || !s.memory.Take(n) {
		return false
	}
	s.claimed += n
	return true
}

// takeFor is take for one entity, which may use the reserve.
func (s *Shard) takeFor(e *entity, n int64) bool {
	size := e.weight()
	if s.take(size, n) {
		return true
	}
	if !s.takeReserved(size, n) {
		return false
	}
	e.reserved += n
	return true
}

// takeReserved claims n bytes of the reserve, for entities that take size bytes now.
func (s *Shard) takeReserved(size, n int64) bool {
	if size+n > s.reserve.Available() || !s.reserve.Take(n) {
		return false
	}
	s.memory.Add(n)
	s.claimed += n
	return true
}

// moveReserved has the part of the reserve that a message has taken move with it. Otherwise
// messages that leave a queue could fill it again and again.
func (s *Shard) moveReserved(o *sending) {
	from, ok := s.entities[o.Settle.ID]
	if !ok || from.reserved == 0 {
		return
	}
	for _, g := range s.sending.growths {
		n := min(from.reserved, g.queue.q.Growth(g.as))
		from.reserved -= n
		g.queue.entity.reserved += n
	}
}

// repay gives back what an entity has of the reserve and does not need any more.
func (s *Shard) repay(e *entity) {
	keep := min(e.reserved, e.weight())
	if s.memoryFree > s.opts.Reserve.Limit() {
		keep = 0
	}
	s.reserve.Release(e.reserved - keep)
	e.reserved = keep
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
	if hq.entity.reserved > 0 {
		s.repay(hq.entity)
	}
}

// claimState charges the state that a session is about to get, if it has none.
func (s *Shard) claimState(id QueueID, session string) bool {
	hq, err := s.hostedQueue(id.Entity, id.SubQueue)
	if err != nil {
		return true // who sets the state is told
	}
	if _, ok := hq.q.SessionState(session); ok {
		return true
	}
	return s.takeFor(hq.entity, queue.GroupOverhead(session, ""))
}

// claimKey charges a fair key that a stored message is about to get, if it is a new one, or new
// in its level.
func (s *Shard) claimKey(hq *hostedQueue, seq queue.SeqNo, to queue.Classification) bool {
	n := hq.q.KeyGrowth(seq, to.Key, to.Level)
	return n == 0 || s.takeFor(hq.entity, n)
}

// claimOrder charges the memory that it takes to put the messages of queues into the orders
// that they are about to get.
func (s *Shard) claimOrder(e *entity, cfgs map[SubQueue]queue.Config) bool {
	n := int64(0)
	for part, cfg := range cfgs {
		n += e.parts[part].q.OrderGrowth(cfg)
	}
	return n == 0 || s.takeFor(e, n)
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
