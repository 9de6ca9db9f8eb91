// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
)

// targetsFirst returns the steps in an order in which the target of a
// forwarding exists, and has its own final target, before the forwarding is
// set. Otherwise the order is unchanged. Dead letters may be forwarded in a
// circle; one step of a circle then sets its forwarding at the end. ends are
// the final targets of the queue or topic of a key.
func targetsFirst(steps []Step, ends map[string][]string) []Step {
	o := orderer{
		steps: steps, ends: ends, state: make([]progress, len(steps)),
		made: map[string]int{}, turned: map[string][]int{}, out: make([]Step, 0, len(steps)),
	}
	for i, s := range steps {
		switch {
		case s.Verb == Create && (s.Kind == Queue || s.Kind == Topic):
			o.made[entity.Key(s.Name)] = i
		case s.Verb == Update && slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Property == "forwardTo" }):
			key := entity.Key(cmp.Or(s.Topic, s.Name))
			o.turned[key] = append(o.turned[key], i)
		}
	}
	for i := range steps {
		o.visit(i)
	}
	return append(o.out, o.late...)
}

type orderer struct {
	steps  []Step
	ends   map[string][]string
	state  []progress
	made   map[string]int   // steps that create a queue or topic, by its key
	turned map[string][]int // steps that change what a queue, or a subscription of a topic, forwards to
	out    []Step
	late   []Step // updates that close a circle
}

// progress is the progress of a step.
type progress uint8

const (
	untouched progress = iota
	begun
	placed
)

// visit adds a step to the order, after the steps that create what it needs.
func (o *orderer) visit(i int) {
	if o.state[i] != untouched {
		return
	}
	o.state[i] = begun
	s := o.steps[i]
	if j, ok := o.made[entity.Key(s.Topic)]; ok && s.Topic != "" {
		o.visit(j)
	}
	first, cut := s.copied(), false
	for _, target := range first.forwards() {
		p, err := entity.ParsePath(*target)
		if *target == "" || err != nil {
			continue
		}
		j, ok := o.made[entity.Key(p.Entity)]
		if !ok || j == i {
			continue
		}
		if o.visit(j); o.state[j] == begun {
			*target, cut = "", true
		}
	}
	if targets := first.forwards(); len(targets) > 0 {
		o.turn(*targets[0])
	}
	o.state[i] = placed
	if !cut {
		o.out = append(o.out, s)
		return
	}
	last := s.copied()
	last.Verb = Update
	switch {
	case s.NewQueue != nil:
		last.Changes = changes(*first.NewQueue, *s.NewQueue)
		first.Changes = changes(entity.Queue{}.WithDefaults(), *first.NewQueue)
	case s.NewSubscription != nil:
		last.NewSubscription.Rules, last.NewSubscription.DefaultRule = nil, nil
		last.Changes = changes(*first.NewSubscription, *s.NewSubscription)
		first.Changes = append(changes(entity.Subscription{}.WithDefaults(), *first.NewSubscription), ruleChanges(first.NewSubscription.InitialRules())...)
	}
	o.out = append(o.out, first)
	o.late = append(o.late, last)
}

// turn adds the steps that change where a target forwards to: its present
// target may lead back in a circle.
func (o *orderer) turn(target string) {
	seen := map[string]bool{}
	for open := []string{target}; len(open) > 0; {
		p, err := entity.ParsePath(open[0])
		key := entity.Key(p.Entity)
		if open = open[1:]; err != nil || seen[key] {
			continue
		}
		seen[key] = true
		for _, i := range o.turned[key] {
			o.visit(i)
		}
		open = append(open, o.ends[key]...)
	}
}

// copied returns the step with a copy of its definition.
func (s Step) copied() Step {
	if s.NewQueue != nil {
		s.NewQueue = new(*s.NewQueue)
	}
	if s.NewSubscription != nil {
		s.NewSubscription = new(*s.NewSubscription)
	}
	return s
}

// forwards returns where the queue or subscription of the step forwards to.
func (s Step) forwards() []*string {
	switch {
	case s.NewQueue != nil:
		return []*string{&s.NewQueue.ForwardTo, &s.NewQueue.ForwardDeadLetteredMessagesTo}
	case s.NewSubscription != nil:
		return []*string{&s.NewSubscription.ForwardTo, &s.NewSubscription.ForwardDeadLetteredMessagesTo}
	}
	return nil
}
