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
		listed = 2*c.Index.Ready + c.ByState.Locked + c.ByState.Scheduled + c.ByState.Deferred + c.ByState.Retrying
	}
	return c.Index.Memory() + listed*entries.ListedCost +
		c.Locks.Memory() + c.Schedule.Memory() + c.Retries.Memory() + c.Window.Memory() + c.Reasons.Memory() + c.Saved.Memory() + c.Sessions.Memory()
}

// Growth returns about how many bytes Memory grows by if as are stored, or somewhat more.
func (q *Queue) Growth(as []Arrival) int64 {
	groups, fresh := q.groups(as)
	return q.MostGrowth(as) - groups + fresh - q.usedLevels(as) // what exists adds nothing
}

// usedLevels returns what MostGrowth counts for levels that the sessions and fair keys of as
// use already, or that are their first.
func (q *Queue) usedLevels(as []Arrival) (n int64) {
	x := &q.core.Index
	session, key := x.LevelCost()
	if session+key == 0 {
		return 0
	}
	for i := range as {
		a := &as[i]
		if s := q.core.Sessions.Find(a.Session); s == nil || s.Uses(a.Level) {
			n += session
		}
		if x.ListsKey(a.Key, a.Level) {
			n += key
		}
	}
	return n
}

// GroupGrowth is the part of Growth that is sessions and fair keys.
func (q *Queue) GroupGrowth(as []Arrival) int64 {
	_, fresh := q.groups(as)
	return fresh
}

// groups returns what the sessions and fair keys of as take, and those of them that are new.
func (q *Queue) groups(as []Arrival) (all, fresh int64) {
	x := &q.core.Index
	for i := range as {
		a := &as[i]
		b := entries.GroupKey{Session: a.Session, InSession: a.InSession, Key: a.Key}
		if b == (entries.GroupKey{}) {
			continue
		}
		cost := x.GroupCost(b.Session, b.Key)
		all += cost
		if _, ok := x.Groups.ByName.Get(b); !ok {
			fresh += cost
		}
	}
	return all, fresh
}

// MostGrowth is Growth if no session and no fair key of as exists yet. It looks nothing up.
func (q *Queue) MostGrowth(as []Arrival) int64 {
	const (
		scheduled = 40 // what a message takes in the schedule
		aside     = 48 // what a reason, or an arrival time, takes
	)
	c := &q.core
	sessionLevel, keyLevel := c.Index.LevelCost()
	n := c.Index.Entries.Growth(len(as)) + int64(len(as))*(sessionLevel+keyLevel)
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

// OrderGrowth returns about how many bytes Memory grows by while the messages are put into the
// order of other settings, and after that: zero if they are in it.
func (q *Queue) OrderGrowth(cfg Config) int64 { return q.core.Index.OrderGrowth(cfg.Order) }

// KeyGrowth returns about how many bytes Memory grows by if a message gets another fair key, and
// a level: zero if there is no such message, or if another of that key is in the level.
func (q *Queue) KeyGrowth(seq SeqNo, key string, l Level) (n int64) {
	x := &q.core.Index
	e := x.Entries.Get(seq)
	if e == nil || key == "" {
		return 0
	}
	b := x.Groups.All[e.Group].GroupKey
	b.Key = key
	if _, ok := x.Groups.ByName.Get(b); !ok {
		n = x.GroupCost(b.Session, key) + entries.ListedCost
	}
	if _, level := x.LevelCost(); !x.ListsKey(key, l) {
		n += level
	}
	return n
}
