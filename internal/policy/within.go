// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/ordering"
)

// fitting rejects an order inside the levels that contradicts another setting.
func (r *reader) fitting(v node, p *Policy) {
	within, _ := v.child("levelOrder")
	switch {
	case p.LevelOrder == ordering.FinishFirst && p.FairKey == "":
		r.faultf(within, "finishFirst needs a fairKey")
	case p.LevelOrder != ordering.Lifo:
	case p.FairKey != "":
		r.faultf(within, "lifo cannot be combined with fairKey; remove one of them")
	case p.Discipline == ordering.Aging || p.Discipline == ordering.Deadline:
		r.faultf(within, "under %s the oldest is served first: lifo needs strict or weighted", p.Discipline)
	case p.saturable() && p.Saturation.Oldest > 0:
		r.faultf(within, "under lifo the oldest always waits long: give saturation.waiting, and no oldest")
	}
}

// describeLevelOrder explains how a message is chosen inside a level, if not by age.
func (p *Policy) describeLevelOrder() []string {
	switch p.LevelOrder {
	case ordering.Lifo:
		return []string{"inside a level the newest is served first; an old one starves while newer ones keep arriving."}
	case ordering.FinishFirst:
		t := sentences{
			fmt.Sprintf("inside a level what was started is finished first: when a message is delivered, all others with its value of %s precede values that were not started, until none is left in the queue; of several the value that was started first, and in it the oldest.", p.FairKey),
			"a value that was not started waits while those that were have messages at its level; of several the one with the oldest message is served first. A message without a value is a value of its own.",
		}
		if p.Discipline == ordering.Aging || p.Discipline == ordering.Deadline || p.saturable() && p.Saturation.Oldest > 0 {
			t.add("the oldest message decides about its level; what is served then is what was started, so what is said above of a message holds for its level.")
		}
		return append(t, p.limits()...)
	}
	return nil
}
