// SPDX-License-Identifier: Apache-2.0

package reclassify

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
)

// Transition is how many messages would change from one class and level to another.
type Transition struct {
	From  ClassLevel `json:"from"`
	To    ClassLevel `json:"to"`
	Count int64      `json:"count"`
}

// ClassLevel is a class and a level that a message has.
type ClassLevel struct {
	Class string      `json:"class"` // empty is none
	Level queue.Level `json:"level"`
}

// DryRun is what a policy would do.
type DryRun struct {
	Entity  string `json:"entity"`
	Looked  int64  `json:"examined"` // messages in all states
	Changed int64  `json:"changed"`  // of those, whose class, level or key would change
	// Unread counts messages that cannot be read, and would be in no class.
	Unread int64 `json:"unread,omitzero"`
	// Transitions counts all messages by where they are and would be, the most first.
	Transitions  []Transition `json:"shifts"`
	Changes      []string     `json:"changes"` // of the policy itself
	Warnings     []string     `json:"warnings"`
	Consequences []string     `json:"consequences"`
}

// Preview returns what another policy would change for the messages of a queue or
// subscription. It changes nothing. Once the policy is expensive, forProcessor is called before each
// message, and done after it: there may be many dry runs.
func Preview(ctx context.Context, n *catalog.Entity, p *policy.Policy, forProcessor func() (done func())) (DryRun, error) {
	def := n.Definition()
	old, next := def.Classifier.Policy, catalog.NewClassifier(p)
	r := DryRun{Entity: n.Path, Changes: policy.Diff(old, p)}
	r.Warnings, r.Consequences = def.Advice(p)
	begin := func() (end func()) {
		if next.Expensive() {
			return forProcessor()
		}
		return atOnce()
	}
	counts := make(map[[2]ClassLevel]int64)
	for from, more := queue.SeqNo(0), true; more; {
		found, err := chunk(ctx, n, from)
		if err != nil {
			return r, err
		}
		ds := found.Messages
		for i := range ds {
			if err := catalog.Charge(ctx, ds[i].Size()); err != nil {
				return r, err
			}
			j, err := evaluate(next, &ds[i], begin)
			switch {
			case ctx.Err() != nil:
				return r, context.Cause(ctx)
			case errors.Is(err, catalog.ErrStopping):
				return r, err
			case errors.Is(err, catalog.ErrMessageNotFound):
				continue
			case err != nil:
				r.Unread++
				continue
			}
			r.Looked++
			if j.changes() {
				r.Changed++
			}
			counts[[2]ClassLevel{
				{old.ClassName(uint8(j.was.Class)), j.was.Level},
				{p.ClassName(uint8(j.next.Class)), j.next.Level},
			}]++
		}
		from, more = found.Next, found.Next != 0
	}
	r.Transitions = transitions(counts)
	return r, nil
}

func transitions(counts map[[2]ClassLevel]int64) []Transition {
	all := []Transition{}
	for at, n := range counts {
		all = append(all, Transition{at[0], at[1], n})
	}
	slices.SortFunc(all, func(x, y Transition) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(y.From.Level, x.From.Level), cmp.Compare(y.To.Level, x.To.Level),
			cmp.Compare(x.From.Class, y.From.Class), cmp.Compare(x.To.Class, y.To.Class))
	})
	return all
}
