// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
)

// rules draws a policy.
func (w *world) rules() *rules {
	r := &rules{shares: map[string]keyShare{}}
	var text []string
	discipline := queue.Discipline(w.rng.IntN(4))
	text = append(text, fmt.Sprintf(`"discipline": %q`, discipline))
	var want queue.Order
	want.Discipline = discipline
	if discipline == queue.Aging {
		want.AgingInterval, want.AgingMaxLevel = time.Duration(w.pick(1, 3, 20))*time.Second, queue.Level(w.pick(3, 5, 9, 255))
		text = append(text, fmt.Sprintf(`"aging": {"every": %q, "upTo": %d}`, want.AgingInterval, want.AgingMaxLevel))
	}
	if discipline == queue.Strict && w.chance(2) {
		text = append(text, w.saturation(&want))
	}
	if w.chance(2) {
		text = append(text, w.fairness(r, &want))
	}
	text = append(text, w.within(&want)...)
	// A limit counts messages or bytes, not both in one policy: with both, the real
	// implementation may evict more than it has to.
	measure := func(n int64) depth { return depth{count: n} }
	if w.chance(3) {
		measure = func(n int64) depth { return depth{bytes: 100 * n} }
	}
	if w.chance(3) {
		r.mark = measure(int64(w.pick(3, 8, 20)))
		text = append(text, `"watermarks": `+r.mark.spell("depth"))
	}
	var cs []string
	for i := range w.pick(0, 1, 2, 3, 4) {
		c, spelled := w.class(i, &want, measure)
		r.classes = append(r.classes, c)
		cs = append(cs, spelled)
	}
	text = append(text, `"classes": [`+strings.Join(cs, ", ")+`]`)
	r.text = "{" + strings.Join(text, ", ") + "}"

	var err error
	if r.real, err = policy.Parse([]byte(r.text)); err != nil {
		w.failf("policy %s: %v", r.text, err)
	}
	r.ranks(&want)
	if got := r.real.Order(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.failf("policy %s\n got order %+v\nwant order %+v", r.text, got, want)
	}
	return r
}

// class draws the i-th class of a policy.
func (w *world) class(i int, o *queue.Order, measure func(int64) depth) (c class, spelled string) {
	c = class{name: fmt.Sprint("c", i), level: w.rng.IntN(8), when: conditions[w.rng.IntN(len(conditions))], weight: 1}
	text := []string{fmt.Sprintf(`"name": %q, "when": %q`, c.name, c.when.sql)}
	if w.chance(3) {
		c.limit = measure(int64(w.pick(2, 5, 15)))
		text = append(text, strings.Trim(c.limit.spell("limit"), "{}"))
	}
	if w.chance(2) {
		c.evict = true
		text = append(text, `"shed": "evict"`)
	} else if (o.Discipline == queue.Aging || o.Discipline == queue.Strict && o.Saturation == queue.Saturation{}) && w.chance(3) {
		c.level = -1 // a class with evict needs a level, or the real implementation must guess
	}
	if c.level >= 0 {
		text = append(text, fmt.Sprintf(`"level": %d`, c.level))
	}
	if w.chance(2) {
		c.objective = time.Duration(w.pick(1, 10, 60)) * time.Second
		text = append(text, fmt.Sprintf(`"objective": {"wait": %q}`, c.objective))
	}
	if w.chance(2) {
		c.weight = uint32(w.pick(1, 2, 5, 8))
		text = append(text, fmt.Sprintf(`"weight": %d`, c.weight))
	}
	if w.chance(5) {
		c.rate = w.pick(1, 2, 5)
		text = append(text, fmt.Sprintf(`"rate": "%d/s"`, c.rate))
	}
	return c, "{" + strings.Join(text, ", ") + "}"
}

// saturation draws low saturation limits for a strict queue, so that it
// switches often.
func (w *world) saturation(o *queue.Order) (spelled string) {
	var text []string
	by := w.pick(1, 2, 3)
	if by&1 != 0 {
		o.Saturation.Waiting = int64(w.pick(2, 5, 8, 12))
		text = append(text, fmt.Sprintf(`"waiting": %d`, o.Saturation.Waiting))
	}
	if by&2 != 0 {
		o.Saturation.Oldest = time.Duration(w.pick(2, 10, 40)) * time.Second
		text = append(text, fmt.Sprintf(`"oldest": %q`, o.Saturation.Oldest))
	}
	return `"saturation": {` + strings.Join(text, ", ") + `}`
}

// within draws the order inside a level, of those that are allowed with the
// rest of the policy.
func (w *world) within(o *queue.Order) (spelled []string) {
	byAge := o.Discipline == queue.Aging || o.Discipline == queue.Deadline || o.Saturation.Oldest > 0
	switch {
	case !w.chance(2):
		return nil
	case o.Fair:
		o.LevelOrder = queue.FinishFirst
		return []string{`"within": "finishFirst"`}
	case !byAge:
		o.LevelOrder = queue.Lifo
		return []string{`"within": "lifo"`}
	}
	return []string{`"within": "fifo"`}
}

// fairness draws fair keys, their shares and what becomes of these.
func (w *world) fairness(r *rules, o *queue.Order) (spelled string) {
	r.fair, o.Fair = true, true
	text := []string{`"fairKey": "tenant"`}
	others, sp := w.keyShare(keyShare{})
	r.shares["*"], o.DefaultShare = others, others.machine("")
	text = append(text, `"keyDefaults": {`+sp+`}`)
	var ks []string
	for i := range w.rng.IntN(3) {
		key := fmt.Sprint("t", i)
		own, sp := w.keyShare(others)
		r.shares[key] = own
		o.Shares = append(o.Shares, own.machine(key))
		ks = append(ks, strings.TrimSuffix(fmt.Sprintf(`{"key": %q, %s`, key, sp), ", ")+"}")
	}
	return strings.Join(append(text, `"keys": [`+strings.Join(ks, ", ")+`]`), ", ")
}

// keyShare draws a share; what it leaves open is as in base.
func (w *world) keyShare(base keyShare) (s keyShare, spelled string) {
	s = base
	var text []string
	if w.chance(2) {
		s.weight = uint32(w.pick(1, 2, 3))
		text = append(text, fmt.Sprintf(`"weight": %d`, s.weight))
	}
	if w.chance(4) {
		s.concurrency = uint32(w.pick(1, 2, 4))
		text = append(text, fmt.Sprintf(`"concurrency": %d`, s.concurrency))
	}
	if w.chance(6) {
		s.rate = w.pick(1, 4)
		text = append(text, fmt.Sprintf(`"rate": "%d/s"`, s.rate))
	}
	if w.chance(6) {
		s.pace = w.pick(1, 2, 5)
		text = append(text, fmt.Sprintf(`"pace": "%d/s"`, s.pace))
	}
	return s, strings.Join(text, ", ")
}
