// SPDX-License-Identifier: Apache-2.0

package session

import (
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// Session has the messages of one session in sequence order, for one receiver at a time.
// It exists while it has messages, a lock or a state.
type Session struct {
	ID      string
	ready   entries.SeqList // its ready messages of all levels, by sequence number
	aside   entries.SeqList // those that are locked, deferred or scheduled, by sequence number
	levels  []level         // the ready ones by level
	Lock    uint32          // in locks; zero is free
	Locked  lease.Ring      // locks of its messages
	State   machine.Ref     // zero is none
	Changed int64           // when state was set or cleared
	groups  int             // that refer to it
}

// NewTable returns a table without sessions.
func NewTable() Table { return Table{All: make([]Session, 1)} }

// Table numbers sessions. Number zero is none.
type Table struct {
	ByID map[string]uint32
	All  []Session
	free []uint32

	Bytes int64 // that the states count toward Footprint
}

// Open returns the number of a session. It adds the session if needed.
func (ss *Table) Open(id string) uint32 {
	if n, ok := ss.ByID[id]; ok {
		return n
	}
	if ss.ByID == nil {
		ss.ByID = make(map[string]uint32)
	}
	var n uint32
	if k := len(ss.free); k > 0 {
		n, ss.free = ss.free[k-1], ss.free[:k-1]
	} else {
		n = uint32(len(ss.All))
		ss.All = append(ss.All, Session{})
	}
	id = strings.Clone(id)
	ss.All[n] = Session{ID: id}
	ss.ByID[id] = n
	return n
}

// Join counts a group of messages.
func (ss *Table) Join(id string) uint32 {
	n := ss.Open(id)
	ss.All[n].groups++
	return n
}

func (ss *Table) Leave(n uint32) {
	ss.All[n].groups--
	ss.close(n)
}

// close removes a session without messages, lock and state.
func (ss *Table) close(n uint32) {
	s := &ss.All[n]
	if s.groups > 0 || s.Lock != 0 || s.State != (machine.Ref{}) {
		return
	}
	delete(ss.ByID, s.ID)
	*s = Session{}
	ss.free = append(ss.free, n)
}

// CloseSession is close of a session by itself.
func (ss *Table) CloseSession(s *Session) { ss.close(ss.ByID[s.ID]) }

// Find returns a session by its id, nil if there is none.
func (ss *Table) Find(id string) *Session {
	n, ok := ss.ByID[id]
	if !ok {
		return nil
	}
	return &ss.All[n]
}

// Of returns the session of a message.
func (ss *Table) Of(x *order.Index, e *entries.Entry) *Session {
	return &ss.All[x.Groups.All[e.Group].SessionNo]
}

// SetState sets the state of a session, or clears it with the zero Ref.
func (ss *Table) SetState(id string, state machine.Ref, changed int64, out *machine.Effects) {
	n := ss.Open(id)
	s := &ss.All[n]
	if s.State != (machine.Ref{}) {
		out.Freed = append(out.Freed, s.State)
	}
	if state != (machine.Ref{}) {
		out.Added = append(out.Added, state)
	}
	ss.Bytes += StateCost(id, state) - StateCost(id, s.State)
	s.State, s.Changed = state, changed
	ss.close(n)
}

// StateCost is what the state of a session counts.
func StateCost(id string, state machine.Ref) int64 {
	if state == (machine.Ref{}) {
		return 0
	}
	return int64(state.Size) + entries.GroupCost(id, "")
}

// List returns the ids of sessions that have messages or a state; with since not zero,
// of those whose state changed after it. It visits up to most sessions from from on,
// and returns where to continue; zero at the end.
func (ss *Table) List(x *order.Index, since time.Time, from, most int) (ids []string, next int) {
	for from++; from < len(ss.All); from++ { // number zero is none
		if most == 0 {
			return ids, from - 1
		}
		most--
		x.Entries.Visits++
		s := &ss.All[from]
		listed := s.groups > 0 || s.State != machine.Ref{}
		if !since.IsZero() {
			listed = s.State != machine.Ref{} && s.Changed > entries.Nanos(since)
		}
		if listed {
			ids = append(ids, s.ID)
		}
	}
	return ids, 0
}
