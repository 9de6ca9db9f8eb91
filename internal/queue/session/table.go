// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
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
	retries int             // of its messages that wait for a time: the session waits with them
	State   machine.Ref     // zero is none
	Changed int64           // when state was set or cleared
	groups  int             // that refer to it
}

// NewTable returns a table without sessions.
func NewTable() Table { return Table{All: make([]*Session, 1)} }

// Table numbers sessions. Number zero is none.
type Table struct {
	byID   entries.Table[string, uint32]
	All    []*Session // nil: the number is free
	free   []uint32
	unused []*Session

	Bytes int64 // that the states count toward Footprint
	held  int64 // that the states take in memory

	states uint64 // sessions with a state
	ids    uint64 // bytes of their ids
}

// Open returns the number of a session. It adds the session if needed.
func (ss *Table) Open(id string) uint32 {
	if n, ok := ss.byID.Get(id); ok {
		return n
	}
	var n uint32
	if k := len(ss.free); k > 0 {
		n, ss.free = ss.free[k-1], ss.free[:k-1]
	} else {
		n = uint32(len(ss.All))
		ss.All = append(ss.All, nil)
	}
	id = strings.Clone(id)
	if k := len(ss.unused); k > 0 {
		ss.All[n], ss.unused = ss.unused[k-1], ss.unused[:k-1]
	} else {
		ss.All[n] = new(Session)
	}
	ss.All[n].ID = id
	ss.byID.Set(id, n)
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
	s := ss.All[n]
	if s.groups > 0 || s.Lock != 0 || s.State != (machine.Ref{}) {
		return
	}
	ss.byID.Delete(s.ID)
	if *s = (Session{}); len(ss.unused) < keptUnused {
		ss.unused = append(ss.unused, s)
	}
	ss.All[n] = nil
	ss.free = append(ss.free, n)
	if len(ss.free) == len(ss.All)-1 && len(ss.All) > keptNumbers {
		ss.All, ss.free = ss.All[:1:1], nil
	}
}

const (
	keptNumbers = 1024 // numbers that have memory while there is no session
	keptUnused  = 64   // sessions that are kept for reuse
)

// CloseSession is close of a session by itself.
func (ss *Table) CloseSession(s *Session) {
	if n, ok := ss.byID.Get(s.ID); ok {
		ss.close(n)
	}
}

// Find returns a session by its id, nil if there is none.
func (ss *Table) Find(id string) *Session {
	n, ok := ss.byID.Get(id)
	if !ok {
		return nil
	}
	return ss.All[n]
}

// Of returns the session of a message.
func (ss *Table) Of(x *order.Index, e *entries.Entry) *Session {
	return ss.All[x.Groups.All[e.Group].SessionNo]
}

// SetState sets the state of a session, or clears it with the zero Ref.
func (ss *Table) SetState(id string, state machine.Ref, changed int64, out *machine.Effects) {
	n := ss.Open(id)
	s := ss.All[n]
	if s.State != (machine.Ref{}) {
		out.Freed = append(out.Freed, s.State)
	}
	if state != (machine.Ref{}) {
		out.Added = append(out.Added, state)
	}
	ss.Bytes += StateCost(id, state) - StateCost(id, s.State)
	ss.held += heldCost(id, state) - heldCost(id, s.State)
	if before, after := s.State != (machine.Ref{}), state != (machine.Ref{}); after && !before {
		ss.states, ss.ids = ss.states+1, ss.ids+uint64(len(id))
	} else if before && !after {
		ss.states, ss.ids = ss.states-1, ss.ids-uint64(len(id))
	}
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

// States returns how many sessions have a state, and how long their ids are together.
func (ss *Table) States() (n, ids uint64) { return ss.states, ss.ids }

// heldCost is what the state of a session takes in memory.
func heldCost(id string, state machine.Ref) int64 { return StateCost(id, state) - int64(state.Size) }

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
		s := ss.All[from]
		if s == nil {
			continue
		}
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

// IDs returns the ids of all sessions, sorted.
func (ss *Table) IDs() []string {
	ids := make([]string, 0, ss.byID.Len())
	for id := range ss.byID.All() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Memory returns how many bytes the sessions take besides those of groups of messages,
// which count with their groups: states, and numbers that are free.
func (ss *Table) Memory() int64 { return ss.held + int64(cap(ss.All)+cap(ss.free))*8 }
