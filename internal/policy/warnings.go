// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/ordering"
)

// Warnings returns what is allowed but probably a mistake, in the order of the fields.
// lock is the lock duration of the queue.
func (p *Policy) Warnings(lock time.Duration) Faults {
	var w Faults
	if p.Discipline == ordering.Aging {
		p.warnCap(&w)
	}
	if p.saturable() {
		p.warnShares(&w)
	}
	for i := range p.Classes {
		p.warnClass(&w, i, lock)
	}
	if p.Discipline == ordering.Deadline && !p.catchesAll() {
		w.addf("classes", "messages that no class takes have no objective and are served after all that have one; end with a class without when")
	}
	switch {
	case p.Alerts.Webhook != "" && p.Alerts.Secret == "":
		w.addf("alerts.secret", "missing: the receiver of the alerts cannot verify that they are authentic")
	case p.Alerts.Webhook == "" && p.Alerts.Secret != "":
		w.addf("alerts.secret", "there is no webhook to sign for")
	}
	return w
}

// warnCap warns of classes that aging cannot reach.
func (p *Policy) warnCap(w *Faults) {
	for i, c := range p.Classes {
		if !c.LevelFromMessage && c.Level > p.Aging.MaxLevel {
			w.addf("aging.maxLevel", "class %q (level %d) is above %d: however long others wait, it goes ahead of them", p.Classes[i].Name, c.Level, p.Aging.MaxLevel)
		}
	}
}

func (p *Policy) warnClass(w *Faults, i int, lock time.Duration) {
	c, at := &p.Classes[i], index("classes", i)
	p.warnShadow(w, i)
	p.warnLevel(w, i)
	if c.when != nil {
		for _, n := range c.when.Names() {
			if unknownOnArrival(n.System) {
				w.addf(join(at, "when"), "sys.%s has no value yet when a message arrives, so the class takes none then", n.System)
			}
		}
	}
	p.warnGaps(w, i)
	if o := c.Objective; o.Wait > 0 && o.Wait < lock {
		w.addf(join(at, "objective.wait"), "%v is shorter than the lock of %v: a message whose consumer fails is redelivered too late",
			entity.Duration(o.Wait), entity.Duration(lock))
	}
	if p.Discipline == ordering.Deadline && c.Objective.Wait == 0 {
		w.addf(join(at, "objective"), "missing: under deadline class %q is served after all that have one, and may starve", c.Name)
	}
	if c.Overflow == Evict && c.MaxMessages == 0 && c.MaxBytes == 0 && p.Watermarks == (Depth{}) {
		w.addf(join(at, "overflow"), "there is neither a limit nor a watermark to keep, so nothing is ever evicted")
	}
}

// warnShadow warns of a class that never gets a message.
func (p *Policy) warnShadow(w *Faults, i int) {
	c, at := p.Classes[i], index("classes", i)
	for _, before := range p.Classes[:i] {
		switch {
		case before.when == nil:
			w.addf(at, "class %q never gets a message: class %q before it takes all", c.Name, before.Name)
			return
		case c.when != nil && before.when.String() == c.when.String():
			w.addf(join(at, "when"), "class %q never gets a message: class %q before it has the same condition", c.Name, before.Name)
			return
		}
	}
}

// warnGaps warns of a condition that is unknown, and so not true, for messages without a
// property, where that is easily overlooked. If such messages are in an earlier class
// anyway, there is nothing to overlook.
func (p *Policy) warnGaps(w *Faults, i int) {
	c := p.Classes[i]
	if c.when == nil || len(*w) >= maxFaults {
		return
	}
	for _, g := range c.when.Gaps() {
		taken := slices.ContainsFunc(p.Classes[:i], func(before Class) bool {
			return before.when == nil || before.when.TrueWithout(g.Missing)
		})
		if !taken {
			w.addf(join(index("classes", i), "when"), "%s is unknown for messages without %s, so class %q does not take them; if it should, write %s; if not, add AND EXISTS(%s)",
				g.Part, g.Missing, c.Name, g.Fix, g.Missing)
		}
	}
}

// warnLevel warns of classes that the discipline does not distinguish.
func (p *Policy) warnLevel(w *Faults, i int) {
	if p.Discipline != ordering.Deadline && !p.weighs() {
		return
	}
	c := p.Classes[i]
	for _, before := range p.Classes[:i] {
		if before.Level != c.Level {
			continue
		}
		how := fmt.Sprintf("under %s their weights add up", p.Discipline)
		switch {
		case p.Discipline == ordering.Deadline:
			how = "under deadline the shorter of their objectives holds for both"
		case p.saturable():
			how = "when saturated their weights add up"
		}
		w.addf(join(index("classes", i), "level"), "class %q has the level of class %q: %s", c.Name, before.Name, how)
		return
	}
}

// catchesAll reports whether every message is in a class.
func (p *Policy) catchesAll() bool {
	for _, c := range p.Classes {
		if c.when == nil {
			return true
		}
	}
	return false
}

// unknownOnArrival reports whether the broker writes a property only after a
// message has been classified.
func unknownOnArrival(n filter.SystemName) bool {
	switch n {
	case filter.ExpiresAtUTC, filter.EnqueuedTimeUTC, filter.SequenceNumber, filter.EnqueuedSequenceNumber,
		filter.LockedUntilUTC, filter.LockToken:
		return true
	}
	return false
}
