// SPDX-License-Identifier: Apache-2.0

package recall

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// Queue is what the choice depends on; [queue.Queue] has it.
type Queue interface {
	// LockedLevel returns the level of a message, and whether its lock is valid.
	LockedLevel(now time.Time, t queue.Token) (queue.Level, bool)
	// Precedes reports whether a ready message comes before one that is locked.
	Precedes(now time.Time, seq queue.SeqNo, t queue.Token) bool
}

// Deliveries are the deliveries to one consumer that it may not have settled yet, and that
// were not recalled.
type Deliveries struct {
	ds      []delivery
	lowest  queue.Level // no level in ds is below it
	pruneAt int         // length of ds at which settled deliveries are removed
}

type delivery struct {
	token queue.Token
	level queue.Level // when it was delivered, or last looked up
}

// minPrune is the lowest number of deliveries at which Add looks for settled ones.
const minPrune = 64

// Len returns how many there are.
func (o *Deliveries) Len() int { return len(o.ds) }

// Add adds a delivery.
func (o *Deliveries) Add(q Queue, now time.Time, d *queue.Delivery) {
	if len(o.ds) >= max(o.pruneAt, minPrune) {
		o.prune(q, now, 0)
		o.pruneAt = 2 * len(o.ds)
	}
	if len(o.ds) == 0 || d.Level < o.lowest {
		o.lowest = d.Level
	}
	o.ds = append(o.ds, delivery{token: d.Token, level: d.Level})
}

// LevelsChanged says that messages may have other levels than when they were delivered.
func (o *Deliveries) LevelsChanged() { o.lowest = 0 } // so that Choice looks them up

// prune removes settled deliveries from those at from and behind it, and updates the level of
// the others.
func (o *Deliveries) prune(q Queue, now time.Time, from int) {
	kept := o.ds[:from]
	if from == 0 {
		o.lowest = 255
	}
	for _, d := range o.ds[from:] {
		level, locked := q.LockedLevel(now, d.token)
		if !locked {
			continue
		}
		d.level = level
		o.lowest = min(o.lowest, level)
		kept = append(kept, d)
	}
	o.ds = kept
}

// Last removes and returns the delivery that was made last, of those that another consumer
// takes. It is the least likely to be started. It returns false if there is none among those
// that were looked at.
func (o *Deliveries) Last(q Queue, now time.Time, take *queue.TakeOptions) (queue.Token, bool) {
	for looked, at := 0, len(o.ds)-1; at >= 0 && looked < mostLooked; looked, at = looked+1, at-1 {
		d := o.ds[at]
		level, locked := q.LockedLevel(now, d.token)
		if locked && !accepts(take, level) {
			continue
		}
		o.ds = slices.Delete(o.ds, at, at+1)
		if locked {
			return d.token, true
		}
	}
	return queue.Token{}, false
}

// Choice is the choice of a delivery to recall for a ready message. The consumers are
// considered one after the other.
type Choice struct {
	Queue Queue
	Now   time.Time
	For   *queue.Delivery

	chosen delivery
	from   *Deliveries // that chosen is in; nil for none
	at     int         // where
	looked int         // deliveries that were looked at
}

// mostLooked is how many deliveries are looked at for one message: a consumer decides how many
// it keeps, and how often it declines. Of one that has more, those are looked at that it got
// last.
const mostLooked = 1 << 12

// Exhausted reports that there are deliveries which were not looked at.
func (c *Choice) Exhausted() bool { return c.looked >= mostLooked }

// Consider compares the deliveries of a consumer with the choice so far. It reports
// whether one of them is the choice now.
func (c *Choice) Consider(o *Deliveries, take *queue.TakeOptions) (better bool) {
	if len(o.ds) == 0 || c.For.Level <= o.lowest || !accepts(take, c.For.Level) || c.Exhausted() {
		return false
	}
	n := min(len(o.ds), mostLooked-c.looked)
	c.looked += n
	from := len(o.ds) - n
	o.prune(c.Queue, c.Now, from)
	for i, d := range slices.Backward(o.ds[from:]) {
		if d.level < c.For.Level && (c.from == nil || d.level < c.chosen.level) && c.Queue.Precedes(c.Now, c.For.Seq, d.token) {
			c.chosen, c.from, c.at, better = d, o, from+i, true
		}
	}
	return better
}

// Recall returns the choice, which is not chosen again. It returns false if there is
// none.
func (c *Choice) Recall() (queue.Token, bool) {
	if c.from == nil {
		return queue.Token{}, false
	}
	c.from.ds = slices.Delete(c.from.ds, c.at, c.at+1)
	return c.chosen.token, true
}

// accepts reports whether a consumer takes messages of a level.
func accepts(w *queue.TakeOptions, l queue.Level) bool {
	return l >= w.MinLevel && (l <= w.MaxLevel || w.MaxLevel == 0 && !w.HasMaxLevel)
}
