// SPDX-License-Identifier: Apache-2.0

package entries

import "strings"

// GroupKey is the session and the fair key of a message.
type GroupKey struct {
	Session   string
	InSession bool
	Key       string
}

// Group is a group key that some message has. Entries have its number, so that a million
// messages of one tenant share one copy of the name.
type Group struct {
	GroupKey
	Refs      int
	SessionNo uint32 // in sessions, if this is a queue of sessions
}

// Groups numbers group keys. Number zero is that of messages without session and fair key.
type Groups struct {
	ByName Table[GroupKey, uint32]
	All    []Group
	free   []uint32
	Bytes  int64 // that all of them count toward Footprint
}

// NewGroups returns groups that contain only number zero.
func NewGroups() Groups { return Groups{All: make([]Group, 1)} }

// Join counts one more message of b and reports whether it is the first.
func (g *Groups) Join(b GroupKey) (n uint32, first bool) {
	if n, ok := g.ByName.Get(b); ok {
		g.All[n].Refs++
		return n, false
	}
	// The names may be part of a message's buffer, which must not stay in memory.
	b.Session, b.Key = strings.Clone(b.Session), strings.Clone(b.Key)
	if k := len(g.free); k > 0 {
		n, g.free = g.free[k-1], g.free[:k-1]
	} else {
		n = uint32(len(g.All))
		g.All = append(g.All, Group{})
	}
	g.All[n] = Group{GroupKey: b, Refs: 1}
	g.ByName.Set(b, n)
	g.Bytes += GroupCost(b.Session, b.Key)
	return n, true
}

// keptGroups is how many numbers have memory while there is no group.
const keptGroups = 1024

// Leave counts one message less and reports whether it was the last.
func (g *Groups) Leave(n uint32) (last bool) {
	gr := &g.All[n]
	gr.Refs--
	if gr.Refs > 0 {
		return false
	}
	g.ByName.Delete(gr.GroupKey)
	g.Bytes -= GroupCost(gr.Session, gr.Key)
	*gr = Group{}
	g.free = append(g.free, n)
	if len(g.free) == len(g.All)-1 && len(g.All) > keptGroups {
		g.All, g.free = make([]Group, 1), nil
	}
	return true
}

// Memory returns about how many bytes the groups take, with their sessions and fair keys.
// A number that is free takes a little.
func (g *Groups) Memory() int64 {
	const freeNumber = 128
	return g.Bytes + int64(len(g.free))*freeNumber
}

// A group counts toward the size of a queue with its names, of which there are several
// copies. The numbers are close to what is measured.
const (
	groupOverhead = 512
	nameCopies    = 3
)

// GroupCost is how many bytes a group counts.
func GroupCost(session, key string) int64 {
	return groupOverhead + nameCopies*int64(len(session)+len(key))
}
