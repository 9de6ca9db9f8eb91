// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
)

// SeqNo numbers the messages of one queue, from 1, without gaps.
type SeqNo uint64

// State is the state of a message.
type State uint8

// The states of a message, as the wire numbers them, and two that the wire calls active
// too: Locked, and Retrying, which waits for the time at which it may be delivered again.
const (
	Ready State = iota
	Deferred
	Scheduled
	Locked
	Retrying
)

// Entry is a message in memory: 56 bytes without a pointer, so that the garbage collector
// does not scan a backlog. The zero entry is a free slot.
type Entry struct {
	Seq        SeqNo
	BodyAt     uint64
	OrderTime  int64 // nanoseconds since 1970; a scheduled message has the time it was sent
	Origin     SeqNo // zero is none
	BodySize   uint32
	StateIndex uint32 // of its lock if it is locked, of its item in the schedule or the retries
	Group      uint32 // its session and fair key, in Groups
	Life       uint32 // from OrderTime to expiry, in the unit of FlagSeconds; zero is without limit
	Failures   uint32
	Level      ordering.Level
	Class      ordering.Class
	Flags      uint8
	Hops       uint8
}

// The flags of an entry. The state is stored plus one: zero is a free slot.
const (
	flagState     = 0x07
	FlagDelivered = 0x08 // was delivered since this process has it in memory
	FlagDeferred  = 0x10 // locked, and deferred again when the lock ends
	FlagSeconds   = 0x20 // Life counts seconds, not milliseconds
	FlagInherited = 0x40 // its arrival time is in Store.ArrivalTimes
	flagInRun     = 0x80 // it is listed by the run that it is allocated in
)

func (e *Entry) live() bool { return e.Flags&flagState != 0 }

// State returns the state of the message.
func (e *Entry) State() State { return State(e.Flags&flagState) - 1 }

// Is reports whether the message is in a state.
func (e *Entry) Is(s State) bool { return e.Flags&flagState == uint8(s)+1 }

// SetState sets the state.
func (e *Entry) SetState(s State) { e.Flags = e.Flags&^flagState | uint8(s) + 1 }

// Body returns where the body is.
func (e *Entry) Body() machine.Ref { return machine.Ref{At: e.BodyAt, Size: e.BodySize} }

// SetBody sets where the body is.
func (e *Entry) SetBody(r machine.Ref) { e.BodyAt, e.BodySize = r.At, r.Size }

// UnlockedState returns the state that the message has without its lock and its time of
// retry: these are logged in records of their own, if at all.
func (e *Entry) UnlockedState() State {
	switch {
	case e.Is(Retrying):
		return Ready
	case !e.Is(Locked):
		return e.State()
	case e.Flags&FlagDeferred != 0:
		return Deferred
	}
	return Ready
}

// Never is a time after all others.
const Never = math.MaxInt64

// Expiry returns when the message expires. A deferred message expires only when it is
// received by its sequence number, and a scheduled one not before it is due.
func (e *Entry) Expiry() int64 {
	if e.Life == 0 {
		return Never
	}
	return e.OrderTime + int64(e.Life)*int64(e.lifeUnit())
}

func (e *Entry) lifeUnit() time.Duration {
	if e.Flags&FlagSeconds != 0 {
		return time.Second
	}
	return time.Millisecond
}

// SetLife rounds a time to live up to what fits into 32 bits: milliseconds to 49 days,
// seconds to 136 years, no limit beyond.
func (e *Entry) SetLife(d time.Duration) {
	e.Life, e.Flags = 0, e.Flags&^FlagSeconds
	if d <= 0 {
		return
	}
	ms := (d-1)/time.Millisecond + 1
	if ms <= math.MaxUint32 {
		e.Life = uint32(ms)
		return
	}
	if s := (d-1)/time.Second + 1; s <= math.MaxUint32 {
		e.Life, e.Flags = uint32(s), e.Flags|FlagSeconds
	}
}

// The times that an entry can have: from 1970, because zero is none, to the year 2262.
// Another time becomes the nearest of these.
const (
	firstNanos = 1
	lastNanos  = Never - 1
	lastSecond = lastNanos/int64(time.Second) - 1 // all of it can be written in nanoseconds
)

// Nanos and Moment translate between time.Time and nanoseconds.
func Nanos(t time.Time) int64 {
	if s := t.Unix(); 0 < s && s <= lastSecond { // every message passes here, comparing times is slow
		return s*int64(time.Second) + int64(t.Nanosecond())
	}
	return clampedNanos(t)
}

func clampedNanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, firstNanos)):
		return firstNanos
	case t.After(time.Unix(0, lastNanos)):
		return lastNanos
	}
	return t.UnixNano()
}

func Moment(n int64) time.Time {
	if n == 0 || n == Never {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// AddClamped adds to a duration, or a duration to a time in nanoseconds. The result is
// at least one and before Never.
func AddClamped(d time.Duration, by int64) time.Duration {
	if by > 0 && int64(d) > Never-by {
		return Never - 1
	}
	return max(d+time.Duration(by), 1)
}
