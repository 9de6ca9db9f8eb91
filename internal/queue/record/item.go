// SPDX-License-Identifier: Apache-2.0

package record

import (
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
)

// Item is a message in a record: the contents of an entry, with the names of its
// session and fair key in full.
type Item struct {
	entries.GroupKey
	Body          machine.Ref
	Origin        entries.SeqNo
	OrderTime     int64
	ArrivalTime   int64 // if it differs from OrderTime; in a record of its own
	NotBefore     int64 // if State is Scheduled
	Life          uint32
	LifeInSeconds uint8 // flagSeconds or zero
	Failures      uint32
	Level         ordering.Level
	Class         ordering.Class
	Hops          uint8
	State         entries.State // Ready, Deferred or Scheduled
	Hashed        bool
	ID            lease.IDHash // if Hashed
}

// The flags of an item in a record, on disk.
const (
	itemHashed    = 0x01
	itemSession   = 0x02
	itemKey       = 0x04
	itemLife      = 0x08
	itemTime      = 0x10 // its order time is not the time of the record
	itemScheduled = 0x20
	itemTravelled = 0x40 // has an origin, failures or hops
	itemDeferred  = 0x80
)

// WriteItem appends it to a record whose own time is at.
func WriteItem(out *machine.Effects, it *Item, at int64) {
	flags := byte(0)
	set := func(bit byte, on bool) {
		if on {
			flags |= bit
		}
	}
	set(itemHashed, it.Hashed)
	set(itemSession, it.InSession)
	set(itemKey, it.Key != "")
	set(itemLife, it.Life != 0)
	set(itemTime, it.OrderTime != at)
	set(itemScheduled, it.State == entries.Scheduled)
	set(itemTravelled, it.Origin != 0 || it.Failures != 0 || it.Hops != 0)
	set(itemDeferred, it.State == entries.Deferred)

	out.Byte(flags)
	out.Byte(byte(it.Level))
	out.Byte(byte(it.Class))
	out.Ref(it.Body)
	if flags == 0 {
		return
	}
	if it.Hashed {
		out.Raw(it.ID[:])
	}
	if it.InSession {
		out.String(it.Session)
	}
	if it.Key != "" {
		out.String(it.Key)
	}
	if it.Life != 0 {
		out.Uint(uint64(it.Life)<<1 | uint64(it.LifeInSeconds/entries.FlagSeconds))
	}
	if it.OrderTime != at {
		out.Fixed(it.OrderTime)
	}
	if it.State == entries.Scheduled {
		out.Fixed(it.NotBefore)
	}
	if flags&itemTravelled != 0 {
		out.Uint(uint64(it.Origin))
		out.Uint(uint64(it.Failures))
		out.Byte(it.Hops)
	}
}

// ReadItem reads what WriteItem wrote.
func ReadItem(r *machine.Reader, at int64) (it Item) {
	flags := r.Byte()
	it.Level, it.Class = ordering.Level(r.Byte()), ordering.Class(r.Byte())
	it.Body = r.Ref()
	it.OrderTime = at
	if flags&itemHashed != 0 {
		it.Hashed = true
		copy(it.ID[:], r.Take(uint64(len(it.ID))))
	}
	if flags&itemSession != 0 {
		it.InSession, it.Session = true, r.String()
	}
	if flags&itemKey != 0 {
		it.Key = r.String()
	}
	if flags&itemLife != 0 {
		life := r.UpTo(1<<33 - 1)
		it.Life, it.LifeInSeconds = uint32(life>>1), uint8(life&1)*entries.FlagSeconds
	}
	if flags&itemTime != 0 {
		it.OrderTime = r.Time()
	}
	if flags&itemScheduled != 0 {
		it.State, it.NotBefore = entries.Scheduled, r.Time()
	}
	if flags&itemTravelled != 0 {
		it.Origin, it.Failures, it.Hops = entries.SeqNo(r.Uint()), r.Uint32(), r.Byte()
	}
	if flags&itemDeferred != 0 {
		if it.State == entries.Scheduled {
			r.Fail()
		}
		it.State = entries.Deferred
	}
	return it
}
