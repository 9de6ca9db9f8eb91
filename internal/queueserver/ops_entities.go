// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
)

// ErrInUse answers DropIdle for an entity that is in use.
var ErrInUse = errors.New("queueserver: entity is in use")

// Define adds an entity and replies with its number. A part that Configs leaves out
// is configured all the same: a queue that has no record of its own would take the
// first snapshot, which may never end, for its beginning.
type Define struct {
	Definition Definition // ID is ignored
	Configs    map[SubQueue]queue.Config
}

func (o Define) begin(s *Shard, r *ID) work {
	def := o.Definition
	monitor, err := s.monitor(def.Name, def.Meta, nil)
	return once(func(s *Shard) error {
		if err != nil {
			return err
		}
		if err := s.definable(def.Meta); err != nil {
			return err
		}
		def.ID = s.nextID
		e := s.newEntity(def)
		for _, u := range e.units {
			s.tx.Add(u)
		}
		s.record(kindDefine, def.ID)
		s.recordDefinition(e)
		s.eff.End()
		for p := range e.parts {
			s.configure(e.parts[p], o.Configs[SubQueue(p)])
		}
		e.parts[Main].setMonitor(monitor)
		*r = def.ID
		return nil
	})
}

// Configure changes an entity's meta bytes and the configuration of its queues. If
// the messages of a queue have to be put into another order, that may go on
// afterwards; AwaitOrder waits for it. ErrMemory says that there is no memory for that.
type Configure struct {
	ID      ID
	Meta    []byte
	Configs map[SubQueue]queue.Config // of the parts that change
}

func (o Configure) begin(s *Shard, _ *struct{}) work {
	monitor, err := s.monitor("", o.Meta, nil)
	return once(func(s *Shard) error {
		e, ok := s.entities[o.ID]
		switch {
		case err != nil:
			return err
		case !ok:
			return ErrNoEntity
		}
		if err := s.definable(o.Meta); err != nil {
			return err
		}
		if !s.expiryFits(e, o.Configs) {
			return ErrDiskFull
		}
		if !s.claimOrder(e, o.Configs) {
			return ErrMemory
		}
		e.Meta = slices.Clone(o.Meta)
		e.resize()
		s.record(kindRedefine, o.ID)
		s.eff.Bytes(o.Meta)
		s.eff.End()
		for _, p := range slices.Sorted(maps.Keys(o.Configs)) {
			s.configure(e.parts[p], o.Configs[p])
		}
		e.parts[Main].setMonitor(monitor)
		return nil
	})
}

// Drop removes entities with everything in them. Their receivers end with an
// error that names the first of them. The space that their bodies take is freed in steps.
type Drop struct{ IDs []ID }

func (o Drop) begin(*Shard, *struct{}) work {
	return once(func(s *Shard) error {
		if err := s.checkEntities(o.IDs); err != nil {
			return err
		}
		s.drop(o.IDs)
		return nil
	})
}

func (s *Shard) checkEntities(ids []ID) error {
	for _, id := range ids {
		if s.entities[id] == nil {
			return ErrNoEntity
		}
	}
	return nil
}

func (s *Shard) drop(ids []ID) {
	reason := fmt.Errorf("%w: %q was deleted", ErrNoEntity, s.entities[ids[0]].Name)
	notify := func(tell func(error)) { // when the drop is durable
		s.tx.Reply(engine.ReplyFunc(func(err error) {
			if err == nil {
				err = reason
			}
			tell(err)
		}), nil)
	}
	for _, id := range ids {
		e := s.entities[id]
		s.record(kindDrop, id)
		s.eff.End()
		for _, hq := range e.parts {
			hq.end(notify)
			s.weighLater(hq)
		}
		delete(s.entities, id)
		s.tx.Drop(e.units[:])
	}
}

// DropIdle is Drop if none of the entities was used for a time; else it fails with
// ErrInUse and replies when one was last used. No operation comes between the check
// and the drop.
type DropIdle struct {
	Entities []IdleEntity
	// LastUse is the last use that the caller knows of.
	LastUse time.Time
	// Limit is how long they must have been idle.
	Limit time.Duration
}

// IdleEntity is an entity that may be idle, and what counts as its use besides
// operations on it and receivers.
type IdleEntity struct {
	ID ID
	// Topic says that the consumer of its main queue is the broker itself, which is no
	// use, and that what the queue holds has yet to be published, which is.
	Topic bool
	// Arrivals says that the last message to arrive is use. It may have waited for
	// its time since it was sent.
	Arrivals bool
}

func (o DropIdle) begin(_ *Shard, lastUse *time.Time) work {
	return once(func(s *Shard) error {
		ids := make([]ID, len(o.Entities))
		for i, x := range o.Entities {
			ids[i] = x.ID
		}
		if err := s.checkEntities(ids); err != nil {
			return err
		}
		*lastUse = o.LastUse
		for _, x := range o.Entities {
			if at := x.lastUse(s); at.After(*lastUse) {
				*lastUse = at
			}
		}
		if s.tx.Now().Sub(*lastUse) < o.Limit {
			return ErrInUse
		}
		s.drop(ids)
		return nil
	})
}

// lastUse returns when an entity was last used, as its operations, messages and
// consumers show.
func (x *IdleEntity) lastUse(s *Shard) time.Time {
	e := s.entities[x.ID]
	q := e.parts[Main].q
	c := q.Counts()
	readers := len(e.parts[DeadLetter].consumers) + len(e.parts[TransferDeadLetter].consumers) + len(e.parts[Main].sessionWaiters)
	switch {
	case readers > 0,
		x.Topic && c.Total() > 0,
		!x.Topic && (len(e.parts[Main].consumers) > 0 || c.Scheduled+c.Retrying > 0):
		return s.tx.Now()
	}
	last := e.used
	if x.Arrivals {
		if d, ok := q.Lookup(q.Last()); ok && d.EnqueuedAt.After(last) {
			last = d.EnqueuedAt
		}
	}
	return last
}
