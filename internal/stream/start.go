// SPDX-License-Identifier: Apache-2.0

package stream

import "time"

// SeqNo is the number of an event in its partition: dense, from 0.
type SeqNo int64

// Start is where a reader begins. The zero value is the oldest event.
type Start struct {
	kind startKind
	seq  SeqNo
	at   time.Time
}

type startKind byte

const (
	startEarliest startKind = iota
	startLatest
	startSeq
	startTime
)

// Earliest begins with the oldest event that is retained.
func Earliest() Start { return Start{} }

// Latest begins with the first event that arrives after the reader was opened.
func Latest() Start { return Start{kind: startLatest} }

// FromSeq begins with the event n. If it is no longer there, the reader begins with the
// oldest.
func FromSeq(n SeqNo) Start { return Start{kind: startSeq, seq: max(n, 0)} }

// AfterSeq begins with the event after n.
func AfterSeq(n SeqNo) Start {
	if n == maxSeq {
		return Start{kind: startSeq, seq: n}
	}
	return FromSeq(n + 1)
}

// FromTime begins with the first event that was enqueued at t or later. Of those that are there
// it leaves out all that are older, also behind that one: where a clock was set back there are
// some. Times of events
// are whole milliseconds.
func FromTime(t time.Time) Start { return Start{kind: startTime, at: t} }

// AfterTime begins with the first event that was enqueued later than t.
func AfterTime(t time.Time) Start {
	return FromTime(t.Truncate(time.Millisecond).Add(time.Millisecond))
}

// maxSeq is more than any partition reaches.
const maxSeq SeqNo = 1<<63 - 1
