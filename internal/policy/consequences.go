// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/ordering"
)

// Consequences explains the effect of the policy: when each class is served, how long it
// can wait, which is rejected first. lock is the lock duration of the queue.
func (p *Policy) Consequences(lock time.Duration) []string {
	var t sentences
	t.add(p.served())
	t.add(p.idle()...)
	for _, c := range p.byLevel() {
		t.add(p.waitBound(c)...)
	}
	t.add(p.unclassified()...)
	t.add(p.describeLevelOrder()...)
	t.add(p.turns()...)
	t.add(p.overflowing()...)
	t.add(p.promises(lock)...)
	return t
}

// sentences are the lines of an explanation.
type sentences []string

func (t *sentences) add(lines ...string) { *t = append(*t, lines...) }

func (t *sentences) addf(format string, args ...any) { t.add(fmt.Sprintf(format, args...)) }

// byLevel returns the classes, the highest first; those without a fixed level last.
func (p *Policy) byLevel() []*Class {
	var cs []*Class
	for i := range p.Classes {
		cs = append(cs, &p.Classes[i])
	}
	slices.SortStableFunc(cs, func(a, b *Class) int { return cmp.Compare(b.order(), a.order()) })
	return cs
}

func (c *Class) order() int {
	if c.LevelFromMessage {
		return -1
	}
	return int(c.Level)
}

// served says how the next message is chosen.
func (p *Policy) served() string {
	switch p.Discipline {
	case ordering.Aging:
		return fmt.Sprintf("aging: a message gains one level for every %v it waits, up to level %d; the highest goes first, among equals the oldest.",
			brief(p.Aging.Interval), p.Aging.MaxLevel)
	case ordering.Deadline:
		return "deadline: the message goes first whose enqueue time plus the objective of its class is earliest; a class whose oldest message is late is served by its level instead, after higher classes and before lower ones; without an objective it comes after all that have one."
	case ordering.Weighted:
		return "weighted: classes that have messages share the deliveries by their weights; a class that has none leaves its share to the others."
	}
	text := "strict: the highest level goes first, inside a level the oldest."
	if p.LevelOrder != ordering.Fifo {
		text = "strict: the highest level goes first."
	}
	if p.saturable() {
		text += fmt.Sprintf(" When %s, the classes that have messages share the deliveries by their weights, until %s.",
			saturationBegins(p.Saturation), saturationEnds(p.Saturation))
	}
	return text
}

// idle names the settings that only another discipline uses. They may stay, for a later
// change of the discipline.
func (p *Policy) idle() []string {
	var t sentences
	if p.Aging != (AgingRule{}) && p.Discipline != ordering.Aging {
		t.add("aging is given, but counts only under the discipline aging.")
	}
	keyed := func(s Share) bool { return s.Weight > 0 }
	if p.LevelOrder == ordering.FinishFirst && (keyed(p.KeyDefaults) || slices.ContainsFunc(p.Keys, keyed)) {
		t.add("keys are given weights, but those count only where keys take turns, under fifo.")
	}
	if p.Saturation != (ordering.Saturation{}) && p.Discipline != ordering.Strict {
		t.add("saturation is given, but counts only under the discipline strict.")
	}
	weighted := func(c Class) bool { return c.Weight > 0 }
	if slices.ContainsFunc(p.Classes, weighted) && !p.weighs() {
		t.add("weights are given, but count only under the discipline weighted, or when strict is saturated.")
	}
	return t
}

// waitBound states what bounds the wait of a message of a class.
func (p *Policy) waitBound(c *Class) []string {
	if c.LevelFromMessage {
		return []string{fmt.Sprintf("class %s: each message has its own level.", c.Name)}
	}
	switch p.Discipline {
	case ordering.Aging:
		return p.waitBoundAging(c)
	case ordering.Deadline:
		return p.waitBoundDeadline(c)
	case ordering.Weighted:
		return p.waitBoundWeighted(c)
	}
	if p.saturable() {
		return p.waitBoundSaturable(c)
	}
	above := p.names(func(o *Class) bool { return !o.LevelFromMessage && o.Level > c.Level })
	if above == "" {
		return []string{fmt.Sprintf("class %s (level %d): served before all other classes.", c.Name, c.Level)}
	}
	return []string{fmt.Sprintf("class %s (level %d): served only when no message of %s is ready; it starves while they keep arriving.", c.Name, c.Level, above)}
}

// waitBoundAging states the bound. A message of level L is raised to a level H above it
// after (H-L) × interval, at most to the maximum. A later message of level H finds it
// there, older. Both are raised alike, so the later one never overtakes it.
func (p *Policy) waitBoundAging(c *Class) []string {
	name := fmt.Sprintf("class %s (level %d)", c.Name, c.Level)
	var t sentences
	var passed []string
	for _, o := range p.byLevel() {
		if !o.LevelFromMessage && o.Level > c.Level && o.Level <= p.Aging.MaxLevel {
			passed = append(passed, fmt.Sprintf("of %s within %v", o.Name, brief(p.rise(c.Level, o.Level))))
		}
	}
	switch {
	case c.Level >= p.Aging.MaxLevel:
		t.addf("%s: is at or above the maximum level of aging and is not raised.", name)
	case len(passed) == 0:
		t.addf("%s: rises to level %d in %v; no other class that comes later goes ahead of it.", name, p.Aging.MaxLevel, brief(p.rise(c.Level, p.Aging.MaxLevel)))
	default:
		t.addf("%s: later messages go ahead of it only if they come soon after it: those %s. What comes later than %v after it, at any level up to %d, waits behind it.",
			name, list(passed), brief(p.rise(c.Level, p.Aging.MaxLevel)), p.Aging.MaxLevel)
	}
	beyond := p.names(func(o *Class) bool { return !o.LevelFromMessage && o.Level > max(c.Level, p.Aging.MaxLevel) })
	if beyond != "" {
		t.addf("%s: there is no bound against %s, above the cap of %d.", name, beyond, p.Aging.MaxLevel)
	}
	return t
}

// rise returns how long a message waits until it is raised from one level to another.
func (p *Policy) rise(from, to uint8) time.Duration {
	return time.Duration(to-from) * p.Aging.Interval // at most 255 years
}

// waitBoundDeadline states the bound: a later message is delivered first only if its
// deadline is earlier, which it is for at most the difference of the objectives. There is
// no bound against higher levels once a message of them, of its own level or of one between
// is late.
func (p *Policy) waitBoundDeadline(c *Class) []string {
	due := append(p.objectives(), make([]time.Duration, 256)...) // by every level
	mine := due[c.Level]
	if mine == 0 {
		above := p.names(func(o *Class) bool { return o.Objective.Wait > 0 })
		if above == "" {
			return []string{fmt.Sprintf("class %s (level %d): has no objective, and neither has any other; the highest level goes first.", c.Name, c.Level)}
		}
		return []string{fmt.Sprintf("class %s (level %d): has no objective; served only when no message of %s is ready; it starves while they keep arriving.", c.Name, c.Level, above)}
	}
	var passed []string
	for _, o := range p.byLevel() {
		if o.Level != c.Level && o.Objective.Wait > 0 && due[o.Level] < mine {
			passed = append(passed, fmt.Sprintf("of %s within %v", o.Name, brief(mine-due[o.Level])))
		}
	}
	text := "nothing that comes later goes ahead of it"
	if len(passed) > 0 {
		text = "later messages go ahead of it only if they come soon after it: those " + list(passed)
	}
	above := p.names(func(o *Class) bool { return !o.LevelFromMessage && o.Level > c.Level && o.Objective.Wait > 0 })
	if above != "" {
		text += fmt.Sprintf(". That holds until it, or a message of %s, is late: then there is no bound against %s", above, above)
	}
	return []string{fmt.Sprintf("class %s (objective %v): %s.", c.Name, brief(mine), text)}
}

// waitBoundWeighted states the share.
func (p *Policy) waitBoundWeighted(c *Class) []string {
	return []string{fmt.Sprintf("class %s (weight %d): %s.", c.Name, max(c.Weight, 1), p.portion(c))}
}

// portion states which share of the deliveries a class has, and how many deliveries of
// others are between two of its own.
func (p *Policy) portion(c *Class) string {
	weights := p.weights()
	var sum uint64
	for _, w := range weights {
		sum += uint64(w)
	}
	text := fmt.Sprintf("at least %.3g %% of the deliveries while it has messages", 100*float64(weights[c.Level])/float64(sum))
	if same := p.names(func(o *Class) bool { return o != c && o.Level == c.Level }); same != "" {
		text += fmt.Sprintf(", together with %s at the same level", same)
	}
	switch n := p.between(c); {
	case n == 1:
		text += "; at most one delivery of another class between two of its own"
	case n > 1:
		text += fmt.Sprintf("; at most %d deliveries of other classes between two of its own", n)
	}
	return text
}

// between returns how many deliveries of others are at most between two of a class. A
// delivery advances the virtual time of a class by 1/weight; another one of weight w can
// be at most that far behind.
func (p *Policy) between(c *Class) (n uint64) {
	weights := p.weights()
	for l, w := range weights {
		if w > 0 && l != int(c.Level) {
			n += uint64(w)/uint64(weights[c.Level]) + 1
		}
	}
	return n
}

// names lists the classes that match, the highest first.
func (p *Policy) names(want func(*Class) bool) string {
	var names []string
	for _, c := range p.byLevel() {
		if want(c) {
			names = append(names, c.Name)
		}
	}
	return list(names)
}

// list joins words as in a sentence: a, b and c.
func list(items []string) string {
	n := len(items)
	if n < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:n-1], ", ") + " and " + items[n-1]
}

// brief writes a length of time as a policy spells it.
func brief(d time.Duration) string { return entity.Duration(d).String() }
