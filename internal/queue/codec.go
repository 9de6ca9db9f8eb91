// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"

	"github.com/triagemq/triagemq/internal/machine"
)

// kind is the first byte of a record. Kinds are on disk and never change; a new
// layout gets a new kind. The layouts are drawn in docs/format/queue-records.md.
type kind = byte

const (
	kindEnqueue      kind = 0x01
	kindRemoved      kind = 0x02
	kindFailed       kind = 0x03
	kindDeferred     kind = 0x04
	kindRewrite      kind = 0x05
	kindActivate     kind = 0x06
	kindReclassify   kind = 0x07
	kindState        kind = 0x08
	kindConfig       kind = 0x09
	kindSettings     kind = 0x0a // kindConfig with more
	kindStarted      kind = 0x0b // keys that were started; also a chunk of a snapshot
	kindArrivalTimes kind = 0x0c
	kindReasons      kind = 0x0d // why messages are dead letters; also a chunk of a snapshot
	kindReturned     kind = 0x0e // a message that was gone is back under its number

	kindSnapshot kind = 0x10 // header
	kindWindow   kind = 0x11 // chunk of the duplicate window
	kindStates   kind = 0x12 // chunk of the session states
	kindEntries  kind = 0x13 // chunk of the messages
	kindEnd      kind = 0x14
	kindHeader   kind = 0x15 // kindSnapshot with more settings
)

// readSeq reads a number of a message, which is never zero and leaves room above.
func readSeq(r *machine.Reader) SeqNo {
	v := r.UpTo(math.MaxInt64)
	if v == 0 {
		r.Fail()
	}
	return SeqNo(v)
}
