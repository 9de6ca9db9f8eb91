// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// The kinds of record that are the host's. They are on disk and never change. 3 to 10 are
// the engine's and those of other hosts.
const (
	kindPartition = 11 // number of a partition that is new
	kindGroups    = 12 // nothing follows: the coordinator is new
)

// partGroups is how a snapshot calls the coordinator: a partition that cannot be.
const partGroups = maxPartitions

var errRecord = errors.New("streamserver: malformed record")

// host is a hub as its engine sees it. Its parts are the coordinator and the partitions, by
// their units.
type host Hub

func (h *host) hub() *Hub { return (*Hub)(h) }

// Effects implements [engine.Host].
func (h *host) Effects() *machine.Effects { return &h.eff }

// Replay implements [engine.Host].
func (h *host) Replay(kind byte, in *machine.Reader, r *engine.Recovery) error {
	switch kind {
	case kindGroups:
		if in.Len() > 0 {
			return errRecord
		}
		if h.groups == nil {
			r.Add(h.hub().newCoordinator().unit)
		}
		return nil
	case kindPartition:
		p, err := h.replayed(in)
		if p != nil {
			r.Add(p.unit)
		}
		return err
	}
	return fmt.Errorf("%w: unknown kind %d", errRecord, kind)
}

// ReplayPart implements [engine.Host].
func (h *host) ReplayPart(in *machine.Reader, r *engine.Recovery) error {
	if again := *in; again.Uint() == partGroups && again.Len() == 0 {
		in.Uint()
		if h.groups == nil {
			r.AddPart(h.hub().newCoordinator().unit)
		}
		return nil
	}
	p, err := h.replayed(in)
	if p != nil {
		r.AddPart(p.unit)
	}
	return err
}

// replayed makes the partition that a record is about; nil if it is there, which it is
// only if records are missing.
func (h *host) replayed(in *machine.Reader) (*partition, error) {
	n := int(in.UpTo(maxPartitions - 1))
	if in.Bad() || in.Len() > 0 {
		return nil, errRecord
	}
	if n < len(h.partitions) && h.partitions[n] != nil {
		return nil, nil
	}
	return h.hub().newPartition(n), nil
}

// ReplayMark implements [engine.Host].
func (h *host) ReplayMark(uint64) {}

// ReplayMissing implements [engine.Host]: a partition is all that its number says, and there
// is one coordinator.
func (h *host) ReplayMissing(unit uint64, r *engine.Recovery) {
	if unit == groupsUnit && h.groups == nil {
		r.AddPart(h.hub().newCoordinator().unit)
	}
	if unit >= firstUnit && unit < firstUnit+maxPartitions {
		r.AddPart(h.hub().newPartition(int(unit - firstUnit)).unit)
	}
}

// Recovered implements [engine.Host].
func (h *host) Recovered() error {
	h.missing = len(h.partitions) < h.set.Partitions
	h.set.Partitions = max(h.set.Partitions, len(h.partitions))
	if h.hub().Losses().Records > 0 {
		h.lostBelow = h.set.Partitions
	}
	for n := range max(len(h.partitions), h.lostBelow) {
		if n >= len(h.partitions) || h.partitions[n] == nil {
			h.missing = true
			if n < h.lostBelow {
				h.lost = append(h.lost, Loss{Partition: n, Gap: stream.Gap{Unsure: true}})
			}
			continue
		}
		p := h.partitions[n]
		h.hub().chargePartition(p)
		p.end, p.endAt, p.given = p.m.Behind(), millis(p.m.Latest()), p.m.Next()
		for _, gap := range p.m.Gaps() {
			h.lost = append(h.lost, Loss{n, gap})
		}
	}
	h.hub().chargeGroups()
	if c := h.groups; c != nil {
		c.sizeAtFull = c.m.Size() // the disk may be full already
	}
	return nil
}

// Parts implements [engine.Host].
func (h *host) Parts() []uint64 {
	var parts []uint64
	if h.groups != nil {
		parts = append(parts, groupsUnit)
	}
	for _, p := range h.partitions {
		parts = append(parts, p.unit.ID)
	}
	return parts
}

// Mark implements [engine.Host].
func (h *host) Mark() uint64 { return 0 }

// Units implements [engine.Host].
func (h *host) Units(part uint64) []*engine.Unit {
	if part == groupsUnit {
		return []*engine.Unit{h.groups.unit}
	}
	return []*engine.Unit{h.partitions[part-firstUnit].unit}
}

// WritePart implements [engine.Host].
func (h *host) WritePart(part uint64) {
	if part == groupsUnit {
		h.eff.Uint(partGroups)
	} else {
		h.eff.Uint(part - firstUnit)
	}
	h.eff.End()
}

// Moved implements [engine.Host]: nothing ever is.
func (h *host) Moved([]machine.Ref) {}

// BeginStep implements [engine.Host]. On a full disk what has expired goes first, without
// the delay that usually saves records.
func (h *host) BeginStep() {
	s := h.hub()
	s.addPartitions()
	s.countPartitions()
	if !s.ticked { // only with the time does a partition know which times cannot be right
		s.ticked = true
		for _, p := range s.partitions {
			s.tick(p)
		}
	}
	if now := s.tx.Now(); s.tx.Full() && now.Sub(s.fullTick) >= time.Second {
		s.fullTick = now
		for _, p := range s.partitions {
			s.tick(p)
		}
	}
}

// Tick implements [engine.Host].
func (h *host) Tick(u *engine.Unit) {
	if p, ok := u.Owner.(*partition); ok {
		h.hub().tick(p)
	} else {
		h.hub().tickGroups()
	}
}

// TickShort implements [engine.Host]: retention goes on. What becomes of members frees nothing.
func (h *host) TickShort(u *engine.Unit) (done bool) {
	p, ok := u.Owner.(*partition)
	if ok {
		h.hub().tick(p)
	}
	return ok
}

// Serve implements [engine.Host].
func (h *host) Serve() { h.hub().holdNews() }

// Serving implements [engine.Host].
func (h *host) Serving() bool { return false }

// Commit implements [engine.Host].
func (h *host) Commit() {}

// Appended implements [engine.Host].
func (h *host) Appended(at journal.Position) {
	for i, p := range h.touched {
		p.touched = false
		h.ends.Hold(h.tx, at, end{p, p.m.Behind(), millis(p.m.Latest()), p.arrived})
		h.touched[i] = nil
	}
	h.touched = h.touched[:0]
}

// Durable implements [engine.Host].
func (h *host) Durable(p engine.Permit) { h.Release(p) }

// Release implements [engine.Host].
func (h *host) Release(p engine.Permit) {
	s := h.hub()
	h.ends.Advance(p, nil)
	if h.ends.Ready() > 0 {
		ends := h.ends.Release(p)
		for _, e := range ends {
			s.advance(e)
		}
		clear(ends)
		h.ends.Reuse(ends)
	}
	if h.answers.Ready() > 0 {
		readers := h.answers.Release(p)
		for _, r := range readers {
			r.deliver()
		}
		clear(readers)
		h.answers.Reuse(readers)
	}
	s.releaseNews(p)
}

// Drain implements [engine.Host].
func (h *host) Drain() {}

// Stopped implements [engine.Host].
func (h *host) Stopped(err error) {
	for _, p := range h.partitions {
		if p != nil {
			p.dismiss(err)
		}
	}
	h.hub().releasePartitions()
	h.hub().stopGroups(err)
}

// millis returns a time in milliseconds; 0 is none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
