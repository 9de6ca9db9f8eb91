// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// picker is a discipline: it chooses the level to serve next. It sees levels
// only by what is first in them, which is enough, because nothing that ranks
// higher can stand behind it.
type picker interface {
	// touch says that what is first in a level may have changed.
	headChanged(l ordering.Level)
	// joined says that a message was added to an open level.
	joined(l ordering.Level, k entries.OrderKey)
	// pick chooses among the open levels between lo and hi.
	pick(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool)
	// served says that a message of l was handed out.
	served(x *Index, l ordering.Level)
	// score places a message that might be first in its level: the least goes
	// first. It holds until the returned time.
	score(l ordering.Level, k entries.OrderKey, now int64) (s score, until int64)
	// rank returns the effective level of a message.
	rank(l ordering.Level, enqueued, now int64) int
	// aged reports whether score depends on the age of a message.
	aged() bool
}

// lane orders what waits inside one level.
type lane interface {
	// add adds a message to the lane.
	add(x *Index, k entries.OrderKey, e *entries.Entry)
	// leave removes a message, which may be anywhere in it.
	remove(x *Index, k entries.OrderKey, e *entries.Entry)
	// first returns the message to hand out next.
	first(x *Index) (entries.OrderKey, bool)
	// oldest returns the key by which the lane as a whole is ranked.
	rankKey(x *Index) (entries.OrderKey, bool)
	// pop removes the message that first returned.
	pop(x *Index, k entries.OrderKey, e *entries.Entry)
	// served says that a message was handed out; it has left already.
	served(x *Index, e *entries.Entry)
	// open reports whether first would find something.
	open() bool
}

// levels are the lanes of a queue and the discipline that chooses among them.
type levels struct {
	all    []lane // by level, as far as one was ever used
	open   bitmap // lanes that have something to hand out
	picker picker
}

// at returns the lane of level l, and makes it on first use.
func (ls *levels) at(x *Index, l ordering.Level) lane {
	for int(l) >= len(ls.all) {
		ls.all = append(ls.all, nil)
	}
	if ls.all[l] == nil {
		ls.all[l] = x.newLane(l)
	}
	return ls.all[l]
}

func (ls *levels) add(x *Index, k entries.OrderKey, e *entries.Entry) {
	lane := ls.at(x, e.Level)
	lane.add(x, k, e)
	if lane.open() {
		ls.open.set(e.Level)
		ls.picker.joined(e.Level, k)
	}
}

func (ls *levels) remove(x *Index, k entries.OrderKey, e *entries.Entry) {
	ls.all[e.Level].remove(x, k, e)
	ls.changed(e.Level)
}

// take removes the first message of its level, which is being handed out.
func (ls *levels) take(x *Index, k entries.OrderKey, e *entries.Entry) {
	ls.all[e.Level].pop(x, k, e)
	ls.served(x, e)
}

// served says that a message, which has left its place, was handed out.
func (ls *levels) served(x *Index, e *entries.Entry) {
	ls.picker.served(x, e.Level)
	ls.all[e.Level].served(x, e)
	ls.changed(e.Level)
}

// changed keeps the set of open levels and the discipline up to date.
func (ls *levels) changed(l ordering.Level) {
	if ls.all[l].open() {
		ls.open.set(l)
	} else {
		ls.open.clear(l)
	}
	ls.picker.headChanged(l)
}

// plainLane is first in, first out, or serves the newest first.
type plainLane struct {
	list   entries.SortedList
	n      int              // messages in line
	newest bool             // goes first
	runs   bool             // a long list has a run
	head   entries.OrderKey // what goes first
	addr   entries.SlotAddr // its address: a hint
	known  bool             // front is right
}

func (p *plainLane) add(x *Index, k entries.OrderKey, e *entries.Entry) {
	p.list.Add(&x.Entries, k, e)
	p.n++
	if p.known && k.Before(p.head) != p.newest {
		p.head = k
	}
}

func (p *plainLane) remove(x *Index, k entries.OrderKey, e *entries.Entry) {
	known := p.known && k != p.head
	p.pop(x, k, e)
	p.known = known
}

func (p *plainLane) first(x *Index) (entries.OrderKey, bool) {
	switch {
	case p.known:
		x.Entries.Hint = p.addr
		return p.head, true
	case p.newest:
		p.head, p.known = p.list.Last(&x.Entries)
	default:
		p.head, p.known = p.list.First(&x.Entries)
	}
	p.addr = x.Entries.Hint
	return p.head, p.known
}

func (p *plainLane) pop(x *Index, k entries.OrderKey, e *entries.Entry) {
	p.list.Remove(&x.Entries, k, e)
	p.known = false
	if p.n--; p.n == 0 {
		p.list.ResetTail()
	}
}

func (p *plainLane) rankKey(x *Index) (entries.OrderKey, bool) { return p.first(x) }
func (p *plainLane) open() bool                                { return p.n > 0 }
func (p *plainLane) served(*Index, *entries.Entry)             {}
