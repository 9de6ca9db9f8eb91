// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
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
		{cfgIsDead, &c.IsDead},
		{cfgFair, &c.Order.Fair},
	}
}

// What the settings may have behind them, on disk.
const (
	moreEnd        = 0
	moreSaturation = 1
	moreWithin     = 2
)

// plain reports whether a Config has nothing but what the first layout has room
// for. It is then written so, and an older program can read it.
func (c *Config) plain() bool {
	return c.Order.Saturation == Saturation{} && c.Order.Within == Fifo
}

// kindOf returns the kind of a record that has c in it: plain, if that has room.
func (c *Config) kindOf(plain, more kind) kind {
	if c.plain() {
		return plain
	}
	return more
}

// settings appends a Config to a record of the kind that kindOf returned.
func (e *Effects) settings(c Config) {
	e.config(c)
	if !c.plain() {
		e.more(c)
	}
}

func (e *Effects) more(c Config) {
	if s := c.Order.Saturation; s != (Saturation{}) {
		e.byte(moreSaturation)
		e.uint(uint64(s.Waiting))
		e.time(int64(s.Oldest))
	}
	if w := c.Order.Within; w != Fifo {
		e.byte(moreWithin)
		e.byte(byte(w))
	}
	e.byte(moreEnd)
}

func (e *Effects) config(c Config) {
	bits := byte(0)
	for _, s := range c.switches() {
		if *s.on {
			bits |= s.bit
		}
	}
	e.byte(bits)
	e.time(int64(c.LockFor))
	e.time(int64(c.TTL))
	e.time(int64(c.Duplicates))
	e.uint(uint64(c.MaxFailures))
	e.uint(uint64(c.MaxBytes))
	e.uint(uint64(c.MaxCount))

	o := &c.Order
	e.byte(byte(o.Discipline))
	e.time(int64(o.Every))
	e.byte(byte(o.UpTo))
	e.uint(uint64(len(o.Objective)))
	for _, d := range o.Objective {
		e.time(int64(d))
	}
	e.uint(uint64(len(o.Weight)))
	for _, w := range o.Weight {
		e.uint(uint64(w))
	}
	e.share(o.Others)
	e.uint(uint64(len(o.Shares)))
	for _, s := range o.Shares {
		e.share(s)
	}
}

func (e *Effects) share(s Share) {
	e.string(s.Key)
	e.uint(uint64(s.Weight))
	e.uint(uint64(s.Cap))
	e.time(int64(math.Float64bits(s.Rate)))
	e.uint(uint64(s.Burst))
}

func (r *reader) config() (c Config) {
	bits := r.flags(cfgSwitches)
	for _, s := range c.switches() {
		*s.on = bits&s.bit != 0
	}
	c.LockFor = time.Duration(r.fixed())
	c.TTL = time.Duration(r.fixed())
	c.Duplicates = time.Duration(r.fixed())
	c.MaxFailures = r.uint32()
	c.MaxBytes = int64(r.upTo(math.MaxInt64))
	c.MaxCount = int64(r.upTo(math.MaxInt64))

	o := &c.Order
	o.Discipline = Discipline(r.byte())
	o.Every = time.Duration(r.fixed())
	o.UpTo = Level(r.byte())
	for n := r.upTo(256); n > 0 && !r.bad; n-- {
		o.Objective = append(o.Objective, time.Duration(r.fixed()))
	}
	for n := r.upTo(256); n > 0 && !r.bad; n-- {
		o.Weight = append(o.Weight, r.uint32())
	}
	o.Others = r.share()
	for n := r.uint(); n > 0 && !r.bad; n-- {
		o.Shares = append(o.Shares, r.share())
	}
	if o.Discipline > Weighted {
		r.fail()
	}
	return c
}

// settings reads the Config of a record of kind k.
func (r *reader) settings(k kind) Config {
	c := r.config()
	if k != kindSettings && k != kindHeader {
		return c
	}
	for !r.bad {
		switch r.byte() {
		case moreEnd:
			return c
		case moreSaturation:
			c.Order.Saturation = Saturation{Waiting: int64(r.upTo(math.MaxInt64)), Oldest: time.Duration(r.fixed())}
		case moreWithin:
			if c.Order.Within = Within(r.byte()); c.Order.Within > FinishFirst {
				r.fail()
			}
		default:
			r.fail()
		}
	}
	return c
}

func (r *reader) share() Share {
	return Share{
		Key:    r.string(),
		Weight: r.uint32(),
		Cap:    r.uint32(),
		Rate:   math.Float64frombits(uint64(r.fixed())),
		Burst:  r.uint32(),
	}
}
