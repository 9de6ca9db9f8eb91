// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// Namespace is a set of entities: the desired ones or the existing ones.
type Namespace struct {
	Queues []entity.Queue
	Topics []config.Topic
	Hubs   []entity.Hub // with their consumer groups; of existing ones $Default need not be listed
}

// Of returns the entities of a configuration.
func Of(c config.Config) Namespace {
	return Namespace{Queues: c.Queues, Topics: c.Topics, Hubs: c.Hubs}
}

// Verb is what a step does.
type Verb string

// The verbs.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Kind is the kind of entity that a step changes.
type Kind string

// The kinds.
const (
	Queue        Kind = "queue"
	Topic        Kind = "topic"
	Subscription Kind = "subscription"
	Rule         Kind = "rule"
	Hub          Kind = "hub"
	Group        Kind = "group"
)

// EntityRef says where something is. A queue, topic or hub has a Name; what belongs to a
// topic or hub names that, and a rule its subscription as well.
type EntityRef struct {
	Kind         Kind   `json:"kind"`
	Hub          string `json:"hub,omitzero"`
	Topic        string `json:"topic,omitzero"`
	Subscription string `json:"subscription,omitzero"`
	Name         string `json:"name"`
}

// Path is the names from the outside in: jobs/high/urgent.
func (p EntityRef) Path() string {
	var names []string
	for _, name := range []string{p.Hub, p.Topic, p.Subscription, p.Name} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, "/")
}

// String is what people call it.
func (p EntityRef) String() string { return string(p.Kind) + " " + p.Path() }

// Step is one change. Of the definitions the one of its kind is set, with its
// defaults, unless it deletes.
type Step struct {
	Verb Verb `json:"verb"`
	EntityRef
	Changes []Change `json:"changes,omitempty"` // of a new thing: what is not the default
	// Conflict is why the step cannot be taken; nil if it can.
	Conflict error `json:"-"`

	NewQueue        *entity.Queue         `json:"-"`
	NewTopic        *entity.Topic         `json:"-"`
	NewSubscription *entity.Subscription  `json:"-"` // with rules if it is created, without if it is updated
	NewRule         *entity.Rule          `json:"-"`
	NewHub          *entity.Hub           `json:"-"` // without groups: each has a step of its own
	NewGroup        *entity.ConsumerGroup `json:"-"`
}

// String is the step in a few words: create queue orders.
func (s Step) String() string { return string(s.Verb) + " " + s.EntityRef.String() }

// Plan is what to do, in order, and what is left alone although the file does not
// name it.
type Plan struct {
	Steps     []Step      `json:"steps"`
	Unmanaged []EntityRef `json:"unmanaged"`
}

// Conflicts returns why the plan cannot be carried out, every reason at once.
func (p Plan) Conflicts() error {
	var errs []error
	for _, s := range p.Steps {
		if s.Conflict != nil {
			errs = append(errs, fmt.Errorf("%v: %w", s.EntityRef, s.Conflict))
		}
	}
	return errors.Join(errs...)
}

// Count returns how many steps have the verb.
func (p Plan) Count(v Verb) int {
	n := 0
	for _, s := range p.Steps {
		if s.Verb == v {
			n++
		}
	}
	return n
}

// Prune turns what would be kept into steps that delete it, after all others.
func (p Plan) Prune() Plan {
	steps := slices.Clone(p.Steps)
	for _, place := range p.Unmanaged {
		steps = append(steps, Step{Verb: Delete, EntityRef: place})
	}
	return Plan{Steps: steps, Unmanaged: []EntityRef{}}
}
