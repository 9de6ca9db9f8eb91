// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
)

// Diff lists what a new policy changes; nothing if it changes nothing.
func Diff(old, new *Policy) []string {
	var t sentences
	t.change("the discipline", old.Discipline, new.Discipline)
	t.change("aging", old.Aging, new.Aging)
	t.change("saturation", saturationWords(old.Saturation), saturationWords(new.Saturation))
	t.change("the order inside a level", old.LevelOrder, new.LevelOrder)
	t.change("the fair key", quoted(old.FairKey), quoted(new.FairKey))
	t.change("the share of a key", old.KeyDefaults, new.KeyDefaults)
	t.diffKeys(old, new)
	t.change("the watermark", orNone(old.Watermarks), orNone(new.Watermarks))
	t.diffClasses(old, new)
	t.change("the webhook of alerts", quoted(old.Alerts.Webhook), quoted(new.Alerts.Webhook))
	if old.Alerts.Secret != new.Alerts.Secret { // the secret itself is not printed
		t.addf("the secret of alerts changes.")
	}
	return t
}

// change adds a sentence about a setting whose value changes.
func (t *sentences) change(what string, from, to fmt.Stringer) {
	if from.String() != to.String() {
		t.addf("%s changes from %s to %s.", what, from, to)
	}
}

// words are text that is printed as it is.
type words string

func (w words) String() string { return string(w) }

func quoted(s string) words {
	if s == "" {
		return "none"
	}
	return words(fmt.Sprintf("%q", s))
}

func orNone[T interface {
	comparable
	fmt.Stringer
}](v T) words {
	var zero T
	if v == zero {
		return "none"
	}
	return words(v.String())
}

// String returns the rule as text.
func (l AgingRule) String() string {
	if l == (AgingRule{}) {
		return "none"
	}
	return fmt.Sprintf("a level every %v up to %d", brief(l.Interval), l.MaxLevel)
}

// String returns the share as text.
func (s Share) String() string {
	var parts []string
	for _, part := range []struct {
		name  string
		value string
		set   bool
	}{
		{"weight", fmt.Sprint(s.Weight), s.Weight > 0},
		{"concurrency", fmt.Sprint(s.Concurrency), s.Concurrency > 0},
		{"rate", s.Rate.String(), s.Rate != Rate{}},
		{"deliveryRate", s.DeliveryRate.String(), s.DeliveryRate != Rate{}},
	} {
		if part.set {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return list(parts)
}

func (t *sentences) diffKeys(old, new *Policy) {
	find := func(in []Share, key string) int {
		return slices.IndexFunc(in, func(s Share) bool { return s.Key == key })
	}
	for _, s := range old.Keys {
		if i := find(new.Keys, s.Key); i < 0 {
			t.addf("key %q loses its own share.", s.Key)
		} else {
			t.change(fmt.Sprintf("the share of key %q", s.Key), s, new.Keys[i])
		}
	}
	for _, s := range new.Keys {
		if find(old.Keys, s.Key) < 0 {
			t.addf("key %q gets its own share: %s.", s.Key, s)
		}
	}
}

func (t *sentences) diffClasses(old, new *Policy) {
	for _, c := range old.Classes {
		if new.find(c.Name) < 0 {
			t.addf("class %s goes.", c.Name)
		}
	}
	for i, c := range new.Classes {
		was := old.find(c.Name)
		if was < 0 {
			t.addf("class %s is new, as number %d: level %s, %s.", c.Name, i+1, c.levelText(), c.whenText())
			continue
		}
		t.diffClass(&old.Classes[was], &c)
	}
	if slices.Equal(sorted(old), sorted(new)) && !slices.Equal(classNames(old), classNames(new)) {
		t.addf("the classes are asked in another order: %s.", list(classNames(new)))
	}
}

func (t *sentences) diffClass(old, new *Class) {
	for _, part := range []struct {
		what     string
		from, to words
	}{
		{"level", words(old.levelText()), words(new.levelText())},
		{"condition", words(old.whenText()), words(new.whenText())},
		{"objective", orNone(old.Objective), orNone(new.Objective)},
		{"weight", words(fmt.Sprint(max(old.Weight, 1))), words(fmt.Sprint(max(new.Weight, 1)))},
		{"rate", orNone(old.Rate), orNone(new.Rate)},
		{"limit", orNone(Depth{old.MaxMessages, old.MaxBytes}), orNone(Depth{new.MaxMessages, new.MaxBytes})},
		{"overflow", words(old.Overflow.String()), words(new.Overflow.String())},
		{"expected rate", orNone(old.ExpectedRate), orNone(new.ExpectedRate)},
	} {
		t.change(fmt.Sprintf("the %s of class %s", part.what, new.Name), part.from, part.to)
	}
}

// String returns the objective as text.
func (o Objective) String() string {
	return fmt.Sprintf("%.4g %% within %v", 100*o.Target, brief(o.Wait))
}

// find returns the index of a class by its name, -1 if there is none.
func (p *Policy) find(name string) int {
	return slices.IndexFunc(p.Classes, func(c Class) bool { return c.Name == name })
}

func classNames(p *Policy) []string {
	var names []string
	for _, c := range p.Classes {
		names = append(names, c.Name)
	}
	return names
}

func sorted(p *Policy) []string { return slices.Sorted(slices.Values(classNames(p))) }

func (c *Class) levelText() string {
	if c.LevelFromMessage {
		return "as each message asks"
	}
	return fmt.Sprint(c.Level)
}

func (c *Class) whenText() string {
	if c.when == nil {
		return "every message"
	}
	return "when " + c.when.String()
}
