// SPDX-License-Identifier: Apache-2.0

package processor

import "time"

// lifecycle is how a pump comes to its end. It has no clock and no lock. It is guarded by the
// pump's mu.
//
//	works ──drain──► draining ──batch done──► saved, released ──► over
//	  │                 │
//	  ├──────lose───────┴──► lost: the handler's context ends ──► over
//	  │
//	  └──overdue──► stuck: saved, released ──► lost ──handler returns──► over
type lifecycle struct {
	draining bool
	by       time.Time     // when draining ends
	coolDown time.Duration // of the release
	lost     bool          // the partition is another's
	giveBack bool          // release it although it is lost
	calls    int           // of the handler, so far
	calling  bool          // a handler runs
	stuck    bool          // a handler goes on although its context has ended
	overdue  bool          // it did so after its time-out: the partition is released meanwhile
	returned bool          // no handler runs any more
	over     bool
}

// ending reports whether no further events are to be handled.
func (l *lifecycle) ending() bool { return l.draining || l.lost || l.overdue }

// lose says that the partition is another's. It reports whether that is new.
func (l *lifecycle) lose() bool {
	first := !l.lost && !l.over
	l.lost = l.lost || first
	return first
}

// drain has the pump end after the batch in hand, at some time at the latest. Only an earlier
// time changes anything.
func (l *lifecycle) drain(by time.Time, coolDown time.Duration) (first, changed bool) {
	if l.over || l.draining && !by.Before(l.by) {
		return false, false
	}
	first = !l.draining
	l.draining, l.by, l.coolDown = true, by, max(l.coolDown, coolDown)
	return first, true
}

// call begins a call of the handler, and returns its number.
func (l *lifecycle) call() int {
	l.calls++
	l.calling = true
	return l.calls
}

// endOfContext is called when the time is over that a handler has after its context has ended.
// It reports whether a handler is stuck, once.
func (l *lifecycle) endOfContext() bool {
	if l.stuck || l.returned {
		return false
	}
	l.stuck = true
	return true
}

// timedOut is endOfContext for the time-out of one call.
func (l *lifecycle) timedOut(call int) bool {
	if !l.calling || call != l.calls || l.lost || !l.endOfContext() {
		return false
	}
	l.overdue = true
	return true
}

// handOver is what there is to do with a partition when its handler has returned.
type handOver uint8

const (
	handOverNothing   handOver = iota // it is another's
	handOverSave                      // save and release
	handOverBack                      // try to, since a reader outside the group has taken it
	handOverElsewhere                 // it is done meanwhile, since the handler was overdue
)

func (l *lifecycle) handOver() handOver {
	switch {
	case l.overdue:
		return handOverElsewhere
	case l.lost && l.giveBack:
		return handOverBack
	case l.draining && !l.lost:
		return handOverSave
	}
	return handOverNothing
}
