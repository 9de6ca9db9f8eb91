// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
)

// Kind is the first byte of a record. Kinds are on disk and never change; a new
// layout gets a new kind. The layouts are drawn in docs/format/queue-records.md.
type Kind = byte

const (
	KindEnqueue      Kind = 0x01
	KindRemoved      Kind = 0x02
	KindFailed       Kind = 0x03
	KindDeferred     Kind = 0x04
	KindRewrite      Kind = 0x05
	KindActivate     Kind = 0x06
	KindReclassify   Kind = 0x07
	KindState        Kind = 0x08
	KindConfig       Kind = 0x09
	KindSettings     Kind = 0x0a // KindConfig with more
	KindStarted      Kind = 0x0b // keys that were started; also a chunk of a snapshot
	KindArrivalTimes Kind = 0x0c
	KindReasons      Kind = 0x0d // why messages are dead letters; also a chunk of a snapshot
	KindReturned     Kind = 0x0e // a removed message is stored again under its sequence number
	KindRetries      Kind = 0x0f // until when messages wait for a retry; also a chunk of a snapshot

	KindSnapshot Kind = 0x10 // header
	KindWindow   Kind = 0x11 // chunk of the duplicate window
	KindStates   Kind = 0x12 // chunk of the session states
	KindEntries  Kind = 0x13 // chunk of the messages
	KindEnd      Kind = 0x14
	KindHeader   Kind = 0x15 // KindSnapshot with more settings

	KindLocks    Kind = 0x16 // durable locks that began or were renewed; also a chunk of a snapshot
	KindUnlocked Kind = 0x17 // durable locks that have ended, if no other record shows it
	KindSaved    Kind = 0x18 // states of messages that their consumers have saved; also a chunk of a snapshot
)

// ReadSeq reads a sequence number. It is never zero and below 2^63.
func ReadSeq(r *machine.Reader) entries.SeqNo {
	v := r.UpTo(math.MaxInt64)
	if v == 0 {
		r.Fail()
	}
	return entries.SeqNo(v)
}

// WriteState appends the state of a session.
func WriteState(out *machine.Effects, session string, state machine.Ref, changed int64) {
	out.String(session)
	out.Ref(state)
	out.Fixed(changed)
}

// WriteLock appends a durable lock.
func WriteLock(out *machine.Effects, l *lease.Lock) {
	out.Uint(uint64(l.Seq))
	out.Fixed(int64(l.Nonce))
	out.Fixed(l.At)
	out.Fixed(l.Until)
}

// ReadLock reads what WriteLock wrote.
func ReadLock(r *machine.Reader) lease.Lock {
	return lease.Lock{Seq: ReadSeq(r), Nonce: uint64(r.Fixed()), At: r.Time(), Until: r.Time()}
}

// WriteStarted appends a fair key that was started.
func WriteStarted(out *machine.Effects, number uint64, name string) {
	out.Uint(number)
	out.String(name)
}
