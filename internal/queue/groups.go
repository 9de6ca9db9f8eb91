// SPDX-License-Identifier: Apache-2.0

package queue

import "strings"

// belonging is the session and the fair key of a message.
type groupKey struct {
	session   string
	inSession bool
	key       string
}

// group is a belonging that some message has. Entries hold its number, so that
// a million messages of one tenant keep one copy of the name.
type group struct {
	groupKey
	refs      int
	sessionNo uint32 // in sessions, if this is a queue of sessions
}

// groups numbers belongings. Number zero belongs to nothing and has no name.
type groups struct {
	byName map[groupKey]uint32
	all    []group
	free   []uint32
	bytes  int64 // what all of them count toward Footprint
}

// join counts one more message of b and reports whether it is the first.
func (g *groups) join(b groupKey) (n uint32, first bool) {
	if n, ok := g.byName[b]; ok {
		g.all[n].refs++
		return n, false
	}
	if g.byName == nil {
		g.byName = make(map[groupKey]uint32)
	}
	// The names may be part of a message's buffer, which must not live on.
	b.session, b.key = strings.Clone(b.session), strings.Clone(b.key)
	if k := len(g.free); k > 0 {
		n, g.free = g.free[k-1], g.free[:k-1]
	} else {
		n = uint32(len(g.all))
		g.all = append(g.all, group{})
	}
	g.all[n] = group{groupKey: b, refs: 1}
	g.byName[b] = n
	g.bytes += GroupOverhead(b.session, b.key)
	return n, true
}

// leave counts one message less and reports whether it was the last.
func (g *groups) leave(n uint32) (last bool) {
	gr := &g.all[n]
	gr.refs--
	if gr.refs > 0 {
		return false
	}
	delete(g.byName, gr.groupKey)
	g.bytes -= GroupOverhead(gr.session, gr.key)
	*gr = group{}
	g.free = append(g.free, n)
	return true
}
