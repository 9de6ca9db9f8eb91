// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// picker is a discipline: it chooses the level to serve next. It compares only the heads
// of the levels. That is sufficient: within a level, no message ranks above the head.
type picker interface {
	// headChanged says that the head of a level may have changed.
	headChanged(l ordering.Level)
	// joined says that a message was added to a non-empty level.
	joined(l ordering.Level, k entries.OrderKey)
	// pick chooses among the non-empty levels between lo and hi.
	pick(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool)
	// served says that a message of l was delivered.
	served(x *Index, l ordering.Level)
	// score ranks a message as the head of its level: the least is served first. It is
	// valid until the returned time.
	score(l ordering.Level, k entries.OrderKey, now int64) (s score, until int64)
	// rank returns the effective level of a message.
	rank(l ordering.Level, enqueued, now int64) int
	// aged reports whether score depends on the age of a message.
	aged() bool
}

// lane orders the ready messages of one level.
type lane interface {
	// add adds a message to the lane.
	add(x *Index, k entries.OrderKey, e *entries.Entry)
	// remove removes a message, which may be anywhere in the lane.
	remove(x *Index, k entries.OrderKey, e *entries.Entry)
	// first returns the message to deliver next.
	first(x *Index) (entries.OrderKey, bool)
	// rankKey returns the key by which the lane as a whole is ranked.
	rankKey(x *Index) (entries.OrderKey, bool)
	// pop removes the message that first returned.
	pop(x *Index, k entries.OrderKey, e *entries.Entry)
	// served says that a message was delivered; it is removed already.
	served(x *Index, e *entries.Entry)
	// open reports whether first would find a message.
	open() bool
}

// levels are the lanes of a queue and the discipline that chooses among them.
type levels struct {
	all    []lane // by level, as far as one was ever used
	open   bitmap // lanes that have a message to deliver
	picker picker
}

// at returns the lane of level l, which it adds on first use.
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

// take removes the first message of its level, which is being delivered.
func (ls *levels) take(x *Index, k entries.OrderKey, e *entries.Entry) {
	ls.all[e.Level].pop(x, k, e)
	ls.served(x, e)
}

// served says that a message, which is removed already, was delivered.
func (ls *levels) served(x *Index, e *entries.Entry) {
	ls.picker.served(x, e.Level)
	ls.all[e.Level].served(x, e)
	ls.changed(e.Level)
}

// changed updates the set of non-empty levels and notifies the discipline.
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
	n      int              // messages
	newest bool             // the newest is served first
	runs   bool             // a long list has a run
	head   entries.OrderKey // the message to deliver next
	addr   entries.SlotAddr // its address: a hint
	known  bool             // head is valid
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
