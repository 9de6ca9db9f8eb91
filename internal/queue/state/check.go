// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// overheads counts the bytes of groups and sessions toward Footprint.
func (q *Core) overheads() (names, states int64) {
	for b := range q.Index.Groups.ByName.All() {
		names += entries.GroupCost(b.Session, b.Key)
	}
	states = q.Sessions.StateBytes()
	return names, states
}

// Check compares everything that the queue counts and refers to with its messages. It
// returns the first invariant that does not hold, by its number in the doc.go of package
// queue. It visits every message: for tests, and for the owner after a replay.
func (q *Core) Check() error {
	defer func(before uint64) { q.Index.Entries.Visits = before }(q.Index.Entries.Visits) // visits of Check do not count
	var counts Counts
	perGroup := make(map[uint32]int)
	last, inherited, due := entries.SeqNo(0), 0, q.dues
	for seq, e := q.Index.Entries.Next(0); e != nil; seq, e = q.Index.Entries.Next(seq + 1) {
		if seq <= last || seq > q.Index.Entries.Last {
			return fmt.Errorf("invariant 1: message %d after %d, highest %d", seq, last, q.Index.Entries.Last)
		}
		last = seq
		counts.Bytes += int64(e.BodySize)
		if e.Flags&entries.FlagInherited != 0 {
			inherited++
		}
		perGroup[e.Group]++
		q.noteDue(e, e.State(), -1)
		switch e.State() {
		case entries.Ready:
			counts.Ready++
		case entries.Locked:
			counts.Locked++
			if l := q.Locks.All[e.StateIndex]; l.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the lock of %d", seq, l.Seq)
			}
		case entries.Scheduled:
			counts.Scheduled++
			if a := q.Schedule.All[e.StateIndex]; a.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the schedule item of %d", seq, a.Seq)
			}
		case entries.Deferred:
			counts.Deferred++
		case entries.Retrying:
			counts.Retrying++
			if a := q.Retries.All[e.StateIndex]; a.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the time of retry of %d", seq, a.Seq)
			}
		}
	}
	if n := int64(q.Retries.Len()); n != counts.Retrying {
		return fmt.Errorf("invariant 2: %d times of retry are stored, for %d messages", n, counts.Retrying)
	}
	left := q.dues
	if q.dues = due; left != (dues{}) {
		return fmt.Errorf("invariant 3: %+v is due, %+v more than what is found", due, left)
	}
	if inherited != q.Index.Entries.ArrivalTimes.Len() {
		return fmt.Errorf("invariant 4: %d arrival times are stored, for %d messages", q.Index.Entries.ArrivalTimes.Len(), inherited)
	}
	for _, t := range []*Refs{&q.Reasons, &q.Saved} {
		bytes := int64(0)
		for seq, body := range t.All() {
			bytes += int64(body.Size)
			if q.Index.Entries.Get(seq) == nil {
				return fmt.Errorf("invariant 4: record %#02x is about message %d, which does not exist", t.kind, seq)
			}
		}
		if bytes != t.Bytes {
			return fmt.Errorf("invariant 3: bodies of records %#02x count %d bytes, found %d", t.kind, t.Bytes, bytes)
		}
	}
	if names, states := q.overheads(); names != q.Index.Groups.Bytes || states != q.Sessions.Bytes {
		return fmt.Errorf("invariant 3: names count %d bytes and states %d, found %d and %d", q.Index.Groups.Bytes, q.Sessions.Bytes, names, states)
	}
	if counts != q.Counts() {
		return fmt.Errorf("invariant 3: counted %+v, found %+v", q.Counts(), counts)
	}
	for n := 1; n < len(q.Index.Groups.All); n++ {
		if got := q.Index.Groups.All[n].Refs; got != perGroup[uint32(n)] {
			return fmt.Errorf("invariant 4: group %d counts %d messages, found %d", n, got, perGroup[uint32(n)])
		}
	}
	if q.Config.Sessions {
		if err := q.Sessions.Check(&q.Index); err != nil {
			return err
		}
	}
	return q.Index.Check(q.listed)
}
