// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
)

// Memory returns about how many bytes the queue takes for its messages, sessions, fair
// keys and message ids, without their bodies. It counts what is allocated: a slab with
// one message left takes as much as a full one. It visits nothing.
func (q *Queue) Memory() int64 {
	c := &q.core
	listed := c.Index.Ready - c.Index.Entries.InRuns()
	if c.Config.Sessions {
		listed = 2*c.Index.Ready + c.ByState.Locked + c.ByState.Scheduled + c.ByState.Deferred
	}
	return c.Index.Memory() + listed*entries.ListedCost +
		c.Locks.Memory() + c.Schedule.Memory() + c.Window.Memory() + c.Reasons.Memory() + c.Sessions.Memory()
}

// Growth returns about how many bytes Memory grows by if as are stored, or somewhat more.
func (q *Queue) Growth(as []Arrival) int64 {
	c := &q.core
	n := q.MostGrowth(as)
	for i := range as { // a group that exists adds nothing
		a := &as[i]
		if b := (entries.GroupKey{Session: a.Session, InSession: a.InSession, Key: a.Key}); b != (entries.GroupKey{}) {
			if _, ok := c.Index.Groups.ByName.Get(b); ok {
				n -= c.Index.GroupCost(b.Session, b.Key)
			}
		}
	}
	return n
}

// MostGrowth is Growth if no session and no fair key of as exists yet. It looks nothing up.
func (q *Queue) MostGrowth(as []Arrival) int64 {
	const (
		scheduled = 40 // what a message takes in the schedule
		aside     = 48 // what a reason, or an arrival time, takes
	)
	c := &q.core
	n := c.Index.Entries.Growth(len(as))
	if c.Config.Sessions {
		n += int64(len(as)) * 2 * entries.ListedCost
	} else if c.Config.Order.Fair {
		n += int64(len(as)) * entries.ListedCost
	}
	for i := range as {
		a := &as[i]
		if a.InSession || a.Key != "" {
			n += c.Index.GroupCost(a.Session, a.Key)
		}
		if c.Window.Applies(a.MessageID) {
			n += lease.IDCost
		}
		if !a.NotBefore.IsZero() {
			n += scheduled
		}
		if a.Reason != (Ref{}) || !a.OrderTime.IsZero() {
			n += aside
		}
	}
	return n
}
