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
	ByName map[GroupKey]uint32
	All    []Group
	free   []uint32
	Bytes  int64 // that all of them count toward Footprint
}

// NewGroups returns groups that contain only number zero.
func NewGroups() Groups { return Groups{All: make([]Group, 1)} }

// Join counts one more message of b and reports whether it is the first.
func (g *Groups) Join(b GroupKey) (n uint32, first bool) {
	if n, ok := g.ByName[b]; ok {
		g.All[n].Refs++
		return n, false
	}
	if g.ByName == nil {
		g.ByName = make(map[GroupKey]uint32)
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
	g.ByName[b] = n
	g.Bytes += GroupCost(b.Session, b.Key)
	return n, true
}

// Leave counts one message less and reports whether it was the last.
func (g *Groups) Leave(n uint32) (last bool) {
	gr := &g.All[n]
	gr.Refs--
	if gr.Refs > 0 {
		return false
	}
	delete(g.ByName, gr.GroupKey)
	g.Bytes -= GroupCost(gr.Session, gr.Key)
	*gr = Group{}
	g.free = append(g.free, n)
	return true
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
