// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Inspect counts what is in the queues of an entity.
type Inspect struct{ ID ID }

// Inspected answers Inspect.
type Inspected struct {
	Counts    map[SubQueue]queue.Counts
	Levels    map[queue.Level]queue.LevelStat // of the main queue
	Receivers int                             // of clients, in all parts
}

func (o Inspect) begin(_ *Shard, r *Inspected) work {
	var survey queue.Survey
	return func(s *Shard) (bool, error) {
		e, ok := s.entities[o.ID]
		if !ok {
			return false, ErrNoEntity
		}
		if !e.parts[Main].q.Survey(&survey, s.opts.VisitStep) {
			return false, nil
		}
		*r = Inspected{Counts: make(map[SubQueue]queue.Counts), Levels: survey.Levels}
		for p, hq := range e.parts {
			r.Counts[SubQueue(p)] = hq.q.Counts()
			r.Receivers += hq.receivers()
		}
		return true, nil
	}
}

// receivers returns how many of the consumers are clients'.
func (hq *hostedQueue) receivers() (n int) {
	for _, c := range hq.consumers {
		if !c.internal {
			n++
		}
	}
	return n
}

// Explain replies why a message is where it is. It looks at every message that waits.
type Explain struct {
	Queue QueueID
	Seq   queue.SeqNo
}

// Explained answers Explain.
type Explained struct {
	Position  queue.Position
	Message   Delivery
	Consumers int
	At        time.Time
	// Rate is how many messages were completed in a second lately.
	Rate float64
}

func (o Explain) begin(_ *Shard, r *Explained) work {
	x := queue.Explain{Seq: o.Seq}
	return func(s *Shard) (bool, error) {
		hq, err := s.use(o.Queue)
		if err != nil {
			return false, err
		}
		done, err := hq.q.Explain(s.tx.Now(), &x, s.opts.VisitStep)
		if err != nil {
			return false, fmt.Errorf("message %d of %q: %w", o.Seq, hq.entity.Name, err)
		}
		if !done {
			return false, nil
		}
		*r = Explained{Position: x.Position, Message: s.delivery(hq, x.Position.Delivery), Consumers: len(hq.consumers), At: s.tx.Now()}
		if hq.monitor != nil {
			r.Rate = hq.monitor.Rate(s.tx.Now())
		}
		return true, nil
	}
}

// ErrSuperseded answers Reclassify by a policy that was replaced meanwhile, and a Send of
// messages that were classified by one.
var ErrSuperseded = errors.New("queueserver: policy was replaced")

// Reclassify gives messages of a main queue another level, class and key, as a policy
// says. Those for whose key there is no memory get none. It answers ErrDiskFull, and has
// changed nothing, while there is space for settlements only.
type Reclassify struct {
	ID       ID
	Revision int64 // of the policy
	Changes  []Reclassified
}

// Reclassified is one message and its new classification.
type Reclassified struct {
	Seq queue.SeqNo
	To  queue.Classification
}

// ReclassifyReply answers Reclassify.
type ReclassifyReply struct {
	Missing []queue.SeqNo // of messages that do not exist any more
	Keyless int           // messages that have got no key, because there is no memory for it
}

func (o Reclassify) begin(_ *Shard, r *ReclassifyReply) work {
	const perMessage = 256 // with its key
	return onceOf(len(o.Changes), func(s *Shard) error {
		hq, err := s.hostedQueue(o.ID, Main)
		if err != nil {
			return err
		}
		if hq.monitor != nil && hq.monitor.Revision() != o.Revision {
			return ErrSuperseded
		}
		if !s.tx.HasSpace(perMessage * len(o.Changes)) {
			return ErrDiskFull
		}
		for _, c := range o.Changes {
			if !s.claimKey(hq, c.Seq, c.To) {
				c.To.Key = ""
				r.Keyless++
			}
			if hq.q.Reclassify(s.tx.Now(), c.Seq, c.To, s.out(hq)) != nil {
				r.Missing = append(r.Missing, c.Seq)
			}
		}
		hq.levelsChanged()
		s.collectEffects(hq)
		return nil
	})
}

// EndReclassify ends the reclassification of a main queue, if all messages that were
// sent with the class of an earlier policy have numbers below Examined. From then on such
// messages are refused with ErrSuperseded, so that their senders classify them anew.
type EndReclassify struct {
	ID       ID
	Revision int64 // of the policy
	Examined queue.SeqNo
}

// ReclassifyEnd is the answer to EndReclassify: Again says that messages from Examined
// on have to be examined too.
type ReclassifyEnd struct{ Again bool }

func (o EndReclassify) begin(_ *Shard, r *ReclassifyEnd) work {
	return once(func(s *Shard) error {
		hq, err := s.hostedQueue(o.ID, Main)
		if err != nil {
			return err
		}
		if hq.monitor != nil && hq.monitor.Revision() != o.Revision {
			return ErrSuperseded
		}
		if r.Again = hq.lastOutdated >= o.Examined; !r.Again {
			hq.classified = o.Revision
		}
		return nil
	})
}

// outdated reports whether a message was classified by another policy than that of its
// queue.
func (hq *hostedQueue) outdated(c *Copy) bool {
	return hq.monitor != nil && hq.part == Main && c.Revision != hq.monitor.Revision()
}

// AwaitOrder is done when the messages of a main queue are in the order that was
// configured last.
type AwaitOrder struct{ ID ID }

func (o AwaitOrder) begin(*Shard, *struct{}) work {
	return func(s *Shard) (bool, error) {
		q, err := s.inspect(QueueID{Entity: o.ID})
		return err == nil && q.InForce(), err
	}
}
