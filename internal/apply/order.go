// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
)

// targetsFirst returns steps in an order in which what is forwarded to is there
// before it is forwarded to, and what it forwards to itself is as it will be, and
// otherwise as they were. Of those that forward to each other in a circle, which dead
// letters may, one begins to do so at the end. ends are what the queue or topic of a
// key forwards to in the end.
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

// progress is how far a step has come.
type progress uint8

const (
	untouched progress = iota
	begun
	placed
)

// visit places a step, and before it those that make what it needs.
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

// turn places the steps that change how it goes on from a target: as it is now, it may
// come back.
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

// copied returns the step with a definition of its own.
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
