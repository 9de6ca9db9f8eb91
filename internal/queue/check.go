// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// overheads counts what groups and sessions count toward Footprint.
func (q *Queue) overheads() (names, states int64) {
	for b := range q.index.Groups.ByName {
		names += GroupOverhead(b.Session, b.Key)
	}
	states = q.sessions.StateBytes()
	return names, states
}

// Check compares everything the queue counts and refers to with its messages. It
// returns the first invariant that does not hold, by its number in doc.go. It
// looks at every message: for tests, and for the owner after a replay.
func (q *Queue) Check() error {
	defer func(before uint64) { q.index.Entries.Visits = before }(q.index.Entries.Visits) // they are not those of a command
	var counts Counts
	perGroup := make(map[uint32]int)
	last, lent := SeqNo(0), 0
	for seq, e := q.index.Entries.Next(0); e != nil; seq, e = q.index.Entries.Next(seq + 1) {
		if seq <= last || seq > q.index.Entries.Last {
			return fmt.Errorf("invariant 1: message %d after %d, highest %d", seq, last, q.index.Entries.Last)
		}
		last = seq
		counts.Bytes += int64(e.BodySize)
		if e.Flags&entries.FlagInherited != 0 {
			lent++
		}
		perGroup[e.Group]++
		switch e.State() {
		case Ready:
			counts.Ready++
		case Locked:
			counts.Locked++
			if l := q.locks.All[e.StateIndex]; l.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the lock of %d", seq, l.Seq)
			}
		case Scheduled:
			counts.Scheduled++
			if a := q.schedule.All[e.StateIndex]; a.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the appointment of %d", seq, a.Seq)
			}
		case Deferred:
			counts.Deferred++
		}
	}
	if lent != len(q.index.Entries.ArrivalTimes) {
		return fmt.Errorf("invariant 4: %d times of arrival are kept, for %d messages", len(q.index.Entries.ArrivalTimes), lent)
	}
	for seq := range q.reasons {
		if q.index.Entries.Get(seq) == nil {
			return fmt.Errorf("invariant 4: a reason is kept for message %d, which is gone", seq)
		}
	}
	if names, states := q.overheads(); names != q.index.Groups.Bytes || states != q.sessions.Bytes {
		return fmt.Errorf("invariant 3: names count %d bytes and states %d, found %d and %d", q.index.Groups.Bytes, q.sessions.Bytes, names, states)
	}
	if counts != q.Counts() {
		return fmt.Errorf("invariant 3: counted %+v, found %+v", q.Counts(), counts)
	}
	for n := 1; n < len(q.index.Groups.All); n++ {
		if got := q.index.Groups.All[n].Refs; got != perGroup[uint32(n)] {
			return fmt.Errorf("invariant 4: group %d counts %d messages, found %d", n, got, perGroup[uint32(n)])
		}
	}
	if q.cfg.Sessions {
		if err := q.sessions.Check(&q.index); err != nil {
			return err
		}
	}
	return q.index.Check(q.listed)
}
