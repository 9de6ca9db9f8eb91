// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
)

// The switches of a Config in a record, on disk.
const (
	cfgSessions          = 0x01
	cfgDeadLetterExpired = 0x02
	cfgSendPaused        = 0x04
	cfgReceivePaused     = 0x08
	cfgIsDead            = 0x10
	cfgFair              = 0x20
	cfgSwitches          = 0x3f
)

// switches pairs each bit with its field, for both directions.
func (c *Config) switches() [6]struct {
	bit byte
	on  *bool
} {
	return [...]struct {
		bit byte
		on  *bool
	}{
		{cfgSessions, &c.Sessions},
		{cfgDeadLetterExpired, &c.DeadLetterExpired},
		{cfgSendPaused, &c.SendPaused},
		{cfgReceivePaused, &c.ReceivePaused},
		{cfgIsDead, &c.DeadLetterQueue},
		{cfgFair, &c.Order.Fair},
	}
}

// The optional fields that follow the settings, on disk.
const (
	moreEnd        = 0
	moreSaturation = 1
	moreLevelOrder = 2
)

// plain reports whether the first layout can represent the Config. It is then
// written in that layout, which an older program can read.
func (c *Config) plain() bool {
	return c.Order.Saturation == ordering.Saturation{} && c.Order.LevelOrder == ordering.Fifo
}

// KindOf returns the kind of a record that contains c: plain, if that layout suffices.
func (c *Config) KindOf(plain, more Kind) Kind {
	if c.plain() {
		return plain
	}
	return more
}

// WriteSettings appends a Config to a record of the kind that KindOf returned.
func WriteSettings(out *machine.Effects, c Config) {
	writeConfig(out, c)
	if !c.plain() {
		writeMore(out, c)
	}
}

func writeMore(out *machine.Effects, c Config) {
	if s := c.Order.Saturation; s != (ordering.Saturation{}) {
		out.Byte(moreSaturation)
		out.Uint(uint64(s.Waiting))
		out.Fixed(int64(s.Oldest))
	}
	if w := c.Order.LevelOrder; w != ordering.Fifo {
		out.Byte(moreLevelOrder)
		out.Byte(byte(w))
	}
	out.Byte(moreEnd)
}

func writeConfig(out *machine.Effects, c Config) {
	bits := byte(0)
	for _, s := range c.switches() {
		if *s.on {
			bits |= s.bit
		}
	}
	out.Byte(bits)
	out.Fixed(int64(c.LockFor))
	out.Fixed(int64(c.TTL))
	out.Fixed(int64(c.DuplicateWindow))
	out.Uint(uint64(c.MaxFailures))
	out.Uint(uint64(c.MaxBytes))
	out.Uint(uint64(c.MaxCount))

	o := &c.Order
	out.Byte(byte(o.Discipline))
	out.Fixed(int64(o.AgingInterval))
	out.Byte(byte(o.AgingMaxLevel))
	out.Uint(uint64(len(o.Objective)))
	for _, d := range o.Objective {
		out.Fixed(int64(d))
	}
	out.Uint(uint64(len(o.Weight)))
	for _, w := range o.Weight {
		out.Uint(uint64(w))
	}
	writeShare(out, o.DefaultShare)
	out.Uint(uint64(len(o.Shares)))
	for _, s := range o.Shares {
		writeShare(out, s)
	}
}

func writeShare(out *machine.Effects, s ordering.Share) {
	out.String(s.Key)
	out.Uint(uint64(s.Weight))
	out.Uint(uint64(s.Cap))
	out.Fixed(int64(math.Float64bits(s.Rate)))
	out.Uint(uint64(s.Burst))
}

func readConfig(r *machine.Reader) (c Config) {
	bits := r.Flags(cfgSwitches)
	for _, s := range c.switches() {
		*s.on = bits&s.bit != 0
	}
	c.LockFor = time.Duration(r.Fixed())
	c.TTL = time.Duration(r.Fixed())
	c.DuplicateWindow = time.Duration(r.Fixed())
	c.MaxFailures = r.Uint32()
	c.MaxBytes = int64(r.UpTo(math.MaxInt64))
	c.MaxCount = int64(r.UpTo(math.MaxInt64))

	o := &c.Order
	o.Discipline = ordering.Discipline(r.Byte())
	o.AgingInterval = time.Duration(r.Fixed())
	o.AgingMaxLevel = ordering.Level(r.Byte())
	for n := r.UpTo(256); n > 0 && !r.Bad(); n-- {
		o.Objective = append(o.Objective, time.Duration(r.Fixed()))
	}
	for n := r.UpTo(256); n > 0 && !r.Bad(); n-- {
		o.Weight = append(o.Weight, r.Uint32())
	}
	o.DefaultShare = readShare(r)
	for n := r.Uint(); n > 0 && !r.Bad(); n-- {
		o.Shares = append(o.Shares, readShare(r))
	}
	if o.Discipline > ordering.Weighted {
		r.Fail()
	}
	return c
}

// ReadSettings reads the Config of a record of kind k.
func ReadSettings(r *machine.Reader, k Kind) Config {
	c := readConfig(r)
	if k != KindSettings && k != KindHeader {
		return c
	}
	for !r.Bad() {
		switch r.Byte() {
		case moreEnd:
			return c
		case moreSaturation:
			c.Order.Saturation = ordering.Saturation{Waiting: int64(r.UpTo(math.MaxInt64)), Oldest: time.Duration(r.Fixed())}
		case moreLevelOrder:
			if c.Order.LevelOrder = ordering.LevelOrder(r.Byte()); c.Order.LevelOrder > ordering.FinishFirst {
				r.Fail()
			}
		default:
			r.Fail()
		}
	}
	return c
}

func readShare(r *machine.Reader) ordering.Share {
	return ordering.Share{
		Key:    r.String(),
		Weight: r.Uint32(),
		Cap:    r.Uint32(),
		Rate:   math.Float64frombits(uint64(r.Fixed())),
		Burst:  r.Uint32(),
	}
}
