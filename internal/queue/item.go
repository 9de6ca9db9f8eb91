// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
)

// item is a message as records know it: what an entry holds, with its names
// spelled out.
type item struct {
	entries.GroupKey
	body          Ref
	origin        SeqNo
	orderTime     int64
	arrivalTime   int64 // if it was lent an age; in a record of its own
	notBefore     int64 // if state is Scheduled
	life          uint32
	lifeInSeconds uint8 // flagSeconds or zero
	failures      uint32
	level         Level
	class         Class
	hops          uint8
	state         State // Ready, Deferred or Scheduled
	hashed        bool
	id            lease.IDHash // if hashed
}

// The flags of an item in a record, on disk.
const (
	itemHashed    = 0x01
	itemSession   = 0x02
	itemKey       = 0x04
	itemLife      = 0x08
	itemTime      = 0x10 // its enqueue time is not the record's
	itemScheduled = 0x20
	itemTravelled = 0x40 // has an origin, failures or hops
	itemDeferred  = 0x80
)

// writeItem appends it to a record whose own time is at.
func writeItem(out *machine.Effects, it *item, at int64) {
	flags := byte(0)
	set := func(bit byte, on bool) {
		if on {
			flags |= bit
		}
	}
	set(itemHashed, it.hashed)
	set(itemSession, it.InSession)
	set(itemKey, it.Key != "")
	set(itemLife, it.life != 0)
	set(itemTime, it.orderTime != at)
	set(itemScheduled, it.state == Scheduled)
	set(itemTravelled, it.origin != 0 || it.failures != 0 || it.hops != 0)
	set(itemDeferred, it.state == Deferred)

	out.Byte(flags)
	out.Byte(byte(it.level))
	out.Byte(byte(it.class))
	out.Ref(it.body)
	if flags == 0 {
		return
	}
	if it.hashed {
		out.Raw(it.id[:])
	}
	if it.InSession {
		out.String(it.Session)
	}
	if it.Key != "" {
		out.String(it.Key)
	}
	if it.life != 0 {
		out.Uint(uint64(it.life)<<1 | uint64(it.lifeInSeconds/entries.FlagSeconds))
	}
	if it.orderTime != at {
		out.Fixed(it.orderTime)
	}
	if it.state == Scheduled {
		out.Fixed(it.notBefore)
	}
	if flags&itemTravelled != 0 {
		out.Uint(uint64(it.origin))
		out.Uint(uint64(it.failures))
		out.Byte(it.hops)
	}
}

// readItem reads what Effects.item wrote.
func readItem(r *machine.Reader, at int64) (it item) {
	flags := r.Byte()
	it.level, it.class = Level(r.Byte()), Class(r.Byte())
	it.body = r.Ref()
	it.orderTime = at
	if flags&itemHashed != 0 {
		it.hashed = true
		copy(it.id[:], r.Take(uint64(len(it.id))))
	}
	if flags&itemSession != 0 {
		it.InSession, it.Session = true, r.String()
	}
	if flags&itemKey != 0 {
		it.Key = r.String()
	}
	if flags&itemLife != 0 {
		life := r.UpTo(1<<33 - 1)
		it.life, it.lifeInSeconds = uint32(life>>1), uint8(life&1)*entries.FlagSeconds
	}
	if flags&itemTime != 0 {
		it.orderTime = r.Time()
	}
	if flags&itemScheduled != 0 {
		it.state, it.notBefore = Scheduled, r.Time()
	}
	if flags&itemTravelled != 0 {
		it.origin, it.failures, it.hops = SeqNo(r.Uint()), r.Uint32(), r.Byte()
	}
	if flags&itemDeferred != 0 {
		if it.state == Scheduled {
			r.Fail()
		}
		it.state = Deferred
	}
	return it
}

// itemOf is the item of a message that the queue has.
func (q *Queue) itemOf(e *entries.Entry) item {
	it := item{
		GroupKey:      q.index.Groups.All[e.Group].GroupKey,
		body:          e.Body(),
		origin:        e.Origin,
		orderTime:     e.OrderTime,
		life:          e.Life,
		lifeInSeconds: e.Flags & entries.FlagSeconds,
		failures:      e.Failures,
		level:         e.Level,
		class:         e.Class,
		hops:          e.Hops,
		state:         e.UnlockedState(),
	}
	if it.state == Scheduled {
		it.notBefore = q.schedule.All[e.StateIndex].At
	}
	return it
}

// insert gives an item the number seq. Live commands and replay both come here.
func (q *Queue) insert(seq SeqNo, it *item, out *machine.Effects) {
	var r *entries.SlabRun
	if it.state == Ready && !q.restore.inSnapshot {
		r = q.index.RunFor(entries.OrderKey{At: it.orderTime, Seq: seq}, it.level)
	}
	e := q.index.Entries.Put(seq, r)
	*e = entries.Entry{
		Seq:       seq,
		BodyAt:    it.body.At,
		BodySize:  it.body.Size,
		OrderTime: it.orderTime,
		Origin:    it.origin,
		Group:     q.join(it.GroupKey),
		Life:      it.life,
		Failures:  it.failures,
		Level:     it.level,
		Class:     it.class,
		Flags:     it.lifeInSeconds,
		Hops:      it.hops,
	}
	if it.arrivalTime != 0 {
		q.index.Entries.SetArrivalTime(seq, e, it.arrivalTime)
	}
	q.counts.Bytes += int64(it.body.Size)
	out.Added = append(out.Added, it.body)
	switch it.state {
	case Scheduled:
		e.SetState(Scheduled)
		e.StateIndex = q.schedule.Add(seq, it.notBefore)
		q.counts.Scheduled++
		q.setAside(seq, e)
	case Deferred:
		e.SetState(Deferred)
		q.counts.Deferred++
		q.setAside(seq, e)
	default:
		q.markReady(seq, e)
	}
}
