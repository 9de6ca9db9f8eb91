// SPDX-License-Identifier: Apache-2.0

package stream

import "time"

const (
	// maxAhead is how far the time of an event may be ahead of the clock, in milliseconds:
	// so long times do not go back when the clock does. A clock that was set right by more
	// was wrong, and so are the times of events that were stored by it.
	maxAhead = 60_000
	// leastTime is a time that no clock shows which is right, unless it shows nothing else:
	// the beginning of 2020, in milliseconds. Machines without a battery begin in 1970.
	leastTime = 1_577_836_800_000
)

// stamp returns the time of an event that is stored now, in milliseconds.
func (p *Partition) stamp(now time.Time) int64 {
	at := max(now.UnixMilli(), 1)
	if p.last > at && p.last-at <= maxAhead {
		return p.last
	}
	return at
}

// doubt is what is assumed of events whose times cannot be right. Retention needs to know when
// they were stored. They are in a row, as a rule: those that came while the clock was wrong.
//
//	time     10:00  10:01  +400 d  +400 d  10:07  10:08
//	                       └── doubt ───┘ until, stored at 10:07 at the latest
//
// It is not part of the state. In each life it is found out when they are the oldest.
type doubt struct {
	now   int64 // the clock, when it was seen last
	until SeqNo // events before it that cannot be right
	at    int64 // were stored then, or before
}

// possible reports whether an event can have been stored at a time.
func (d *doubt) possible(at int64) bool {
	return d.now == 0 || at-d.now <= maxAhead && (at >= leastTime || d.now < leastTime)
}

// storedAt returns when the events of a batch or block were stored, as far as retention is
// concerned: first is the number of the first, at the time of the last of them.
func (p *Partition) storedAt(first SeqNo, at int64) int64 {
	d := &p.doubt
	if d.possible(at) {
		return at
	}
	if first >= d.until || !d.possible(d.at) {
		d.until, d.at = p.believe(first)
	}
	return d.at
}

// believe returns the first event behind a batch or block, whose time cannot be right, that has
// one which can be, and that time: those before were stored by then. If there is none, they
// are taken to be stored now.
func (p *Partition) believe(wrong SeqNo) (SeqNo, int64) {
	sealed, open := p.blocks.list(), p.open
	if i := p.blocks.holding(wrong); i < len(sealed) {
		sealed = sealed[i+1:]
	} else {
		sealed, open = nil, open[min(Holding(open, wrong)+1, len(open)):]
	}
	for i := range sealed {
		if p.doubt.possible(sealed[i].From) {
			return sealed[i].First, sealed[i].From
		}
	}
	for i := range open {
		if p.doubt.possible(open[i].At) {
			return open[i].First, open[i].At
		}
	}
	return p.next, p.doubt.now
}
