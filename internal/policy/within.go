// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/ordering"
)

// fitting refuses an order inside the levels that another part of the policy cannot
// do with.
func (r *reader) fitting(v node, p *Policy) {
	within, _ := v.child("levelOrder")
	switch {
	case p.LevelOrder == ordering.FinishFirst && p.FairKey == "":
		r.faultf(within, "there is no fairKey that says what belongs together")
	case p.LevelOrder != ordering.Lifo:
	case p.FairKey != "":
		r.faultf(within, "fair keys take turns by age: leave out fairKey, or lifo")
	case p.Discipline == ordering.Aging || p.Discipline == ordering.Deadline:
		r.faultf(within, "under %s the oldest goes first: lifo goes with strict and weighted", p.Discipline)
	case p.saturable() && p.Saturation.Oldest > 0:
		r.faultf(within, "under lifo the oldest always waits long: give saturation.waiting, and no oldest")
	}
}

// describeLevelOrder says how a message is chosen inside a level, where that is not by age.
func (p *Policy) describeLevelOrder() []string {
	switch p.LevelOrder {
	case ordering.Lifo:
		return []string{"inside a level the newest goes first; while newer ones keep coming, an old one waits for ever."}
	case ordering.FinishFirst:
		t := sentences{
			fmt.Sprintf("inside a level what was started is finished first: when a message is handed out, all others with its value of %s go ahead of values that were not started, until none is left in the queue; of several the value that was started first, and in it the oldest.", p.FairKey),
			"a value that was not started waits while those that were have messages at its level; of several the one with the oldest message goes first. A message without a value stands for itself.",
		}
		if p.Discipline == ordering.Aging || p.Discipline == ordering.Deadline || p.saturable() && p.Saturation.Oldest > 0 {
			t.add("the oldest message decides about its level; what is served then is what was started, so what is said above of a message holds for its level.")
		}
		return append(t, p.limits()...)
	}
	return nil
}
