// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

// unclassified explains the level of messages that no class matches.
func (p *Policy) unclassified() []string {
	if len(p.Classes) == 0 || p.catchesAll() {
		return nil
	}
	text := "messages that no class takes keep the level that they ask for, 4 if none"
	switch p.Discipline {
	case ordering.Aging:
		text += fmt.Sprintf("; one that asks for more than %d goes ahead of everything that has risen", p.Aging.MaxLevel)
	case ordering.Deadline:
		text += "; unless a class with an objective has that level, they are served last"
	case ordering.Weighted:
		text += "; unless a class has that level, it takes part with weight 1"
	}
	if p.saturable() {
		text += "; when saturated, it takes part with weight 1 unless a class has that level"
	}
	return []string{text + "."}
}

// turns explains the round robin of the fair keys.
func (p *Policy) turns() []string {
	if p.FairKey == "" || p.LevelOrder == ordering.FinishFirst {
		return nil
	}
	var t sentences
	t.addf("inside a level the values of %s take turns, by weight, the one with the fewest messages in flight first; messages without one are one value.", p.FairKey)
	switch {
	case p.saturable() && p.Saturation.Oldest > 0:
		t.addf("a message whose key is at a limit makes nothing saturated; whose turn it is inside a level is up to the keys, so what is said above of a message holds for its level.")
	case p.Discipline == ordering.Aging || p.Discipline == ordering.Deadline:
		t.addf("the oldest message of a level decides when the level is served; whose turn it is then is up to the keys, so what is said above of a message holds for its level.")
	}
	return append(t, p.limits()...)
}

// limits lists the limits of the keys.
func (p *Policy) limits() []string {
	var t sentences
	describe := func(s Share, who string) {
		if p.LevelOrder == ordering.FinishFirst {
			s.Weight = 0 // weights have no effect
		}
		t.add(s.limits(who)...)
	}
	describe(p.KeyDefaults, "every key")
	for _, s := range p.Keys {
		describe(s.Inherit(p.KeyDefaults), fmt.Sprintf("key %q", s.Key))
	}
	return t
}

func (s Share) limits(who string) []string {
	var parts []string
	if s.Weight > 1 {
		parts = append(parts, fmt.Sprintf("has %d turns in a row", s.Weight))
	}
	if s.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("has at most %d messages in flight", s.Concurrency))
	}
	if s.DeliveryRate != (Rate{}) {
		parts = append(parts, fmt.Sprintf("is delivered at most %v", s.DeliveryRate))
	}
	if s.Rate != (Rate{}) {
		parts = append(parts, fmt.Sprintf("may send at most %v; more is rejected", s.Rate))
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{who + " " + list(parts) + "."}
}

// overflowing explains which classes are rejected when, and which first.
func (p *Policy) overflowing() []string {
	var t sentences
	for _, c := range p.byLevel() {
		if c.Rate != (Rate{}) {
			t.addf("class %s: more than %v is rejected.", c.Name, c.Rate)
		}
		if c.MaxMessages > 0 || c.MaxBytes > 0 {
			t.addf("class %s: with %s waiting, %s.", c.Name, Depth{c.MaxMessages, c.MaxBytes}, c.Overflow.sentence())
		}
	}
	if p.Watermarks == (Depth{}) {
		return t
	}
	t.addf("with %s ready in the queue, the lowest level is rejected first: a message is rejected only if so many are ready at its level and above.", p.Watermarks)
	levels := p.distinctLevels()
	if len(levels) > 1 {
		t.addf("the order in which they are rejected: %s.", list(levels))
	}
	if evicted := p.names(func(c *Class) bool { return c.Overflow == Evict }); evicted != "" {
		t.addf("the oldest waiting messages of %s are evicted for higher ones and for newer ones of their own.", evicted)
	}
	return t
}

func (s Overflow) sentence() string {
	if s == Evict {
		return "the oldest of it is evicted for each new one"
	}
	return "new ones are rejected"
}

// String returns the limits that are set.
func (d Depth) String() string {
	switch {
	case d.Bytes == 0:
		return fmt.Sprintf("%d messages", d.Count)
	case d.Count == 0:
		return fmt.Sprintf("%d bytes", d.Bytes)
	}
	return fmt.Sprintf("%d messages or %d bytes", d.Count, d.Bytes)
}

// distinctLevels returns the names of the classes, those of a level together, the
// lowest first.
func (p *Policy) distinctLevels() []string {
	var groups []string
	cs := p.byLevel()
	for i := len(cs) - 1; i >= 0; i-- {
		if cs[i].LevelFromMessage {
			continue
		}
		level := cs[i].Level
		groups = append(groups, p.names(func(c *Class) bool { return !c.LevelFromMessage && c.Level == level }))
		for i > 0 && cs[i-1].Level == level {
			i--
		}
	}
	return groups
}

// promises lists the objectives, and how a lost consumer affects them.
func (p *Policy) promises(lock time.Duration) []string {
	var t sentences
	for _, c := range p.byLevel() {
		if c.Objective.Wait == 0 {
			continue
		}
		text := fmt.Sprintf("class %s: %.4g %% are to start within %v", c.Name, 100*c.Objective.Target, brief(c.Objective.Wait))
		if lock > 0 {
			text += fmt.Sprintf("; one whose consumer dies can start again after the lock of %v", brief(lock))
		}
		t.add(text + ".")
	}
	return t
}
