// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// entry is all that memory keeps of a message: 56 bytes without a pointer, so
// that the garbage collector never looks at a backlog. The zero entry is a free
// place.
type entry struct {
	seq        SeqNo
	bodyAt     uint64
	orderTime  int64  // nanoseconds since 1970: its age; of a scheduled message, when it was sent
	origin     SeqNo  // zero is none
	bodySize   uint32 //
	stateIndex uint32 // in locks if it is locked, in schedule if it is scheduled
	group      uint32 // session and fair key, in groups
	life       uint32 // from enqueued to expiry, in units of flagSeconds; zero is for ever
	failures   uint32
	level      Level
	class      Class
	flags      uint8
	hops       uint8
}

// The flags of an entry. The state is stored plus one: zero is a free place.
const (
	flagState     = 0x07
	flagDelivered = 0x08 // was handed out in this process's memory
	flagDeferred  = 0x10 // locked, and deferred again when the lock ends
	flagSeconds   = 0x20 // life counts seconds, not milliseconds
	flagInherited = 0x40 // when it arrived is in Queue.arrived
	flagInRun     = 0x80 // it is listed by the run that it is allocated in
)

func (e *entry) live() bool       { return e.flags&flagState != 0 }
func (e *entry) state() State     { return State(e.flags&flagState) - 1 }
func (e *entry) is(s State) bool  { return e.flags&flagState == uint8(s)+1 }
func (e *entry) setState(s State) { e.flags = e.flags&^flagState | uint8(s) + 1 }
func (e *entry) body() Ref        { return Ref{At: e.bodyAt, Size: e.bodySize} }
func (e *entry) setBody(r Ref)    { e.bodyAt, e.bodySize = r.At, r.Size }

// resting returns the state that a restart would find the message in: locks are
// not logged.
func (e *entry) unlockedState() State {
	switch {
	case !e.is(Locked):
		return e.state()
	case e.flags&flagDeferred != 0:
		return Deferred
	}
	return Ready
}

// never is a moment that does not come.
const never = math.MaxInt64

// expiry returns when the message has outlived its use. A deferred message expires
// only when it is asked for, and a scheduled one has not begun to live.
func (e *entry) expiry() int64 {
	if e.life == 0 {
		return never
	}
	return e.orderTime + int64(e.life)*int64(e.lifeUnit())
}

func (e *entry) lifeUnit() time.Duration {
	if e.flags&flagSeconds != 0 {
		return time.Second
	}
	return time.Millisecond
}

// setLife rounds a life up to what 32 bits can hold: milliseconds to 49 days,
// seconds to 136 years, for ever beyond.
func (e *entry) setLife(d time.Duration) {
	e.life, e.flags = 0, e.flags&^flagSeconds
	if d <= 0 {
		return
	}
	ms := (d-1)/time.Millisecond + 1
	if ms <= math.MaxUint32 {
		e.life = uint32(ms)
		return
	}
	if s := (d-1)/time.Second + 1; s <= math.MaxUint32 {
		e.life, e.flags = uint32(s), e.flags|flagSeconds
	}
}

// The times that nanoseconds can tell: from 1970, because zero is none, to the
// year 2262. Others stand for the nearest one.
var (
	firstMoment = time.Unix(0, 1)
	lastMoment  = time.Unix(0, never-1)
)

// nanos and moment translate between the clock of the owner and ours.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(firstMoment):
		return firstMoment.UnixNano()
	case t.After(lastMoment):
		return lastMoment.UnixNano()
	}
	return t.UnixNano()
}

func moment(n int64) time.Time {
	if n == 0 || n == never {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
