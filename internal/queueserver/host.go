// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// host is a shard as its engine sees it. Its parts are the entities, by their numbers.
type host Shard

func (h *host) shard() *Shard { return (*Shard)(h) }

// Effects implements [engine.Host].
func (h *host) Effects() *machine.Effects { return &h.eff.Effects }

// Replay implements [engine.Host].
func (h *host) Replay(kind byte, in *machine.Reader, r *engine.Recovery) error {
	s := h.shard()
	id := ID(in.Uint())
	e := s.entities[id]
	switch kind {
	case kindDefine:
		def := readDefinition(in, id)
		if in.Bad() {
			return errRecord
		}
		if r.Damaged() {
			h.replaced(def, r)
		}
		for _, u := range s.newEntity(def).units {
			r.Add(u)
		}
		h.certainAt = s.Engine.Losses().Records // its number was the next one
	case kindRedefine:
		if e == nil && !r.Partial() && !r.Damaged() {
			return fmt.Errorf("%w: entity %d is not defined", journal.ErrCorrupt, id)
		}
		if e != nil {
			e.Meta = append([]byte(nil), in.Bytes()...)
			e.resize()
		}
	case kindDrop:
		if e != nil {
			delete(s.entities, id)
			r.Drop(e.units[:])
		}
	case kindPublished:
		if e != nil {
			e.Published = in.Uint()
		}
	case kindNote:
		if e != nil {
			e.Note = append([]byte(nil), in.Bytes()...)
			e.resize()
		}
	default:
		return fmt.Errorf("%w: unknown kind %d", errRecord, kind)
	}
	return nil
}

// ReplayPart implements [engine.Host].
func (h *host) ReplayPart(in *machine.Reader, r *engine.Recovery) error {
	id, published := ID(in.Uint()), in.Uint()
	def := readDefinition(in, id)
	def.Published = published
	if in.Bad() {
		return errRecord
	}
	if e := h.entities[id]; e != nil { // only if records are missing: one may have been about this
		e.Meta, e.Published = def.Meta, max(e.Published, published)
		e.resize()
		return nil
	}
	if r.Damaged() && h.replaced(def, r) {
		return nil
	}
	for _, u := range h.shard().newEntity(def).units {
		r.AddPart(u)
	}
	return nil
}

// ReplayMark implements [engine.Host].
func (h *host) ReplayMark(mark uint64) { h.nextID = max(h.nextID, ID(mark)) }

// ReplayMissing implements [engine.Host]: the number of the entity is not used again.
func (h *host) ReplayMissing(unit uint64, _ *engine.Recovery) {
	h.nextID = max(h.nextID, ID(unit/parts)+1)
}

// replaced drops the entities that had the name of def before, which was theirs until
// they were dropped: the record of that is missing. It reports whether def is one.
func (h *host) replaced(def Definition, r *engine.Recovery) bool {
	for _, e := range h.shard().sorted() {
		switch {
		case e.Name != def.Name || e.ID == def.ID:
		case e.ID > def.ID:
			return true
		default:
			delete(h.entities, e.ID)
			r.Drop(e.units[:])
		}
	}
	return false
}

// lostEntities is more entities than can have been defined in records that are lost. Their
// numbers are not used again: other shards may refer to them.
const lostEntities = 1 << 16

// Recovered implements [engine.Host].
func (h *host) Recovered() error {
	s := h.shard()
	if s.Engine.Losses().Records > h.certainAt {
		h.nextID += min(lostEntities, math.MaxUint32-h.nextID)
	}
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			s.touch(hq)
			s.weigh(hq)
			hq.arrivals.Recovered(hq.q.Last())
		}
	}
	return s.monitorAll()
}

// Parts implements [engine.Host].
func (h *host) Parts() []uint64 {
	ids := make([]uint64, 0, len(h.entities))
	for _, id := range slices.Sorted(maps.Keys(h.entities)) {
		ids = append(ids, uint64(id))
	}
	return ids
}

// Mark implements [engine.Host]: the number of the next entity.
func (h *host) Mark() uint64 { return uint64(h.nextID) }

// Units implements [engine.Host].
func (h *host) Units(part uint64) []*engine.Unit {
	if e, ok := h.entities[ID(part)]; ok {
		return e.units[:]
	}
	return nil
}

// WritePart implements [engine.Host].
func (h *host) WritePart(part uint64) {
	s, e := h.shard(), h.entities[ID(part)]
	s.eff.Uint(uint64(e.ID))
	s.eff.Uint(e.Published)
	s.recordDefinition(e)
	s.eff.End()
	if len(e.Note) > 0 {
		s.recordNote(e)
	}
}

// Moved implements [engine.Host].
func (h *host) Moved(from []machine.Ref) {
	for _, ref := range from {
		h.cache.Drop(ref)
	}
}

// BeginStep implements [engine.Host].
func (h *host) BeginStep() {
	s := h.shard()
	if !s.confirmed {
		s.confirmNumbers()
	}
	s.dispatchLeft = s.opts.DispatchStep
	s.memoryFree = s.memory.Available()
	if len(s.stranded) > 0 && s.tx.HasSpace(perFailure) {
		s.retryStranded()
	}
}

// Tick implements [engine.Host].
func (h *host) Tick(u *engine.Unit) { h.tick(u, (*queue.Queue).Tick) }

// TickShort implements [engine.Host].
func (h *host) TickShort(u *engine.Unit) (done bool) {
	h.tick(u, (*queue.Queue).TickShort)
	return true
}

func (h *host) tick(u *engine.Unit, tick func(*queue.Queue, time.Time, *queue.Effects) bool) {
	s, hq := h.shard(), u.Owner.(*hostedQueue)
	s.withdrawExpired(hq)
	tick(hq.q, s.tx.Now(), s.out(hq))
	s.collectEffects(hq)
	hq.checkSessions(s)
}

// Serve implements [engine.Host].
func (h *host) Serve() {
	s := h.shard()
	s.dispatch()
	s.weighAll()
}

// Serving implements [engine.Host].
func (h *host) Serving() bool { return len(h.dirty) > 0 }

// Commit implements [engine.Host].
func (h *host) Commit() { h.shard().recordPublished() }

// Appended implements [engine.Host].
func (h *host) Appended(at journal.Position) { h.shard().recordArrivals(at) }

// Durable implements [engine.Host].
func (h *host) Durable(p engine.Permit) { h.shard().advance(p) }

// Release implements [engine.Host].
func (h *host) Release(p engine.Permit) { h.shard().release(p) }

// Drain implements [engine.Host].
func (h *host) Drain() { h.shard().dismiss(ErrStopped) }

// Stopped implements [engine.Host].
func (h *host) Stopped(err error) {
	s := h.shard()
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			hq.end(func(tell func(error)) { tell(err) })
		}
	}
	s.memory.Close()
	s.reserve.Close()
}
