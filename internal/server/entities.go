// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/triagemq/triagemq/internal/apply"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// define creates the entities of a file and brings those that exist in line with it, as far
// as what is stored allows it. What cannot be applied is logged, returned, and left as it is:
// messages are worth more than the file, and nothing that clients did may keep the broker
// from starting. What the file does not name is left alone. The error is why the broker
// cannot go on.
func define(ctx context.Context, b *broker.Broker, cfg config.Config, log *slog.Logger) (unapplied []string, err error) {
	failed, err := defineOnce(ctx, b, cfg, log)
	exists := func(e *stepError) bool { return errors.Is(e, broker.ErrExists) }
	if err == nil && slices.ContainsFunc(failed, exists) { // a topic that was lost has brought its subscriptions back
		failed, err = defineOnce(ctx, b, cfg, log)
	}
	for i, e := range failed {
		if i == mostUnapplied {
			more := fmt.Sprintf("%d more parts of the configuration cannot be applied", len(failed)-i)
			log.Error(more)
			return append(unapplied, more), err
		}
		log.Error("part of the configuration cannot be applied, because of what is stored",
			"action", e.step.Verb, "kind", e.step.Kind, "entity", e.step.Path(), "err", broker.Text(e.err))
		unapplied = append(unapplied, e.Error())
	}
	return unapplied, err
}

// mostUnapplied is how many parts of a configuration that cannot be applied are named.
const mostUnapplied = 100

// defineOnce carries out a plan, step by step, and returns the steps that failed.
func defineOnce(ctx context.Context, b *broker.Broker, cfg config.Config, log *slog.Logger) (failed []*stepError, err error) {
	have, err := present(b)
	if err != nil {
		return nil, err
	}
	plan := apply.Diff(apply.Of(cfg), have)
	if b.New() { // nothing is stored, so what is wrong is wrong in the file
		if fs := obstacles(cfg, plan); len(fs) > 0 {
			return nil, fs
		}
	}
	t := taker{b: b}
	applied := 0
	for i, s := range plan.Steps {
		err := s.Conflict
		if err == nil {
			err = t.take(ctx, plan.Steps[i:])
		}
		switch {
		case err == nil:
			if applied++; applied <= mostApplied {
				log.Info("entity configuration applied", "action", s.Verb, "kind", s.Kind, "entity", s.Path())
			}
		case ctx.Err() != nil:
			return failed, context.Cause(ctx)
		case errors.Is(err, broker.ErrStopping):
			return failed, &stepError{s, err}
		default:
			failed = append(failed, &stepError{s, err})
		}
	}
	if applied > mostApplied {
		log.Info("more entity configuration applied", "entities", applied-mostApplied)
	}
	return failed, nil
}

// mostApplied is how many changes of entities are logged one by one.
const mostApplied = 1000

// taker takes the steps of a plan. Queues that are created one after the other are created
// together.
type taker struct {
	b       *broker.Broker
	results []error // of the first steps that are to be taken next
}

// take takes the first of the steps that are left.
func (t *taker) take(ctx context.Context, steps []apply.Step) error {
	if len(t.results) == 0 {
		var qs []entity.Queue
		for _, s := range steps {
			if s.Conflict != nil || s.Verb != apply.Create || s.Kind != apply.Queue || s.NewQueue.ForwardTo != "" || s.NewQueue.ForwardDeadLetteredMessagesTo != "" {
				break
			}
			qs = append(qs, *s.NewQueue)
		}
		if len(qs) < 2 {
			return take(ctx, t.b, steps[0])
		}
		t.results = t.b.CreateQueues(ctx, qs)
	}
	err := t.results[0]
	t.results = t.results[1:]
	return err
}

// obstacles returns what keeps the entities of a file from being created, and where it
// is written.
func obstacles(cfg config.Config, plan apply.Plan) config.Faults {
	var fs config.Faults
	for _, s := range plan.Steps {
		if s.Conflict == nil || s.Verb != apply.Create {
			continue
		}
		faults, ok := errors.AsType[entity.Faults](s.Conflict)
		if !ok {
			faults = entity.Faults{{Field: "name", Problem: s.Conflict.Error()}}
		}
		for _, f := range faults {
			fs = append(fs, cfg.Fault(written(cfg, s.EntityRef)+"."+f.Field, f.Problem))
		}
	}
	return fs
}

// written returns the path of an entity in a configuration.
func written(cfg config.Config, p apply.EntityRef) string {
	if p.Kind == apply.Queue {
		return fmt.Sprintf("queues[%d]", slices.IndexFunc(cfg.Queues, func(q entity.Queue) bool { return q.Name == p.Name }))
	}
	if p.Kind == apply.Hub || p.Kind == apply.Group {
		name := cmp.Or(p.Hub, p.Name)
		return fmt.Sprintf("hubs[%d]", slices.IndexFunc(cfg.Hubs, func(h entity.Hub) bool { return h.Name == name }))
	}
	topic := cmp.Or(p.Topic, p.Name)
	i := slices.IndexFunc(cfg.Topics, func(t config.Topic) bool { return t.Name == topic })
	if p.Kind == apply.Topic {
		return fmt.Sprintf("topics[%d]", i)
	}
	j := slices.IndexFunc(cfg.Topics[i].Subscriptions, func(s entity.Subscription) bool { return s.Name == p.Name })
	return fmt.Sprintf("topics[%d].subscriptions[%d]", i, j)
}

// stepError is why a step could not be taken, for those who wrote the file.
type stepError struct {
	step apply.Step
	err  error
}

func (e *stepError) Error() string { return e.step.String() + ": " + broker.Text(e.err) }
func (e *stepError) Unwrap() error { return e.err }

// present returns the entities that there are.
func present(b *broker.Broker) (apply.Namespace, error) {
	n := apply.Namespace{Queues: b.Queues(), Hubs: b.Hubs()}
	for _, t := range b.Topics() {
		subs, err := b.Subscriptions(t.Name)
		if err != nil && !errors.Is(err, broker.ErrNotFound) { // deleted meanwhile
			return n, err
		}
		n.Topics = append(n.Topics, config.Topic{Topic: t, Subscriptions: subs})
	}
	return n, nil
}

// take takes one step of a plan that deletes nothing.
func take(ctx context.Context, b *broker.Broker, s apply.Step) error {
	var err error
	switch s.Kind {
	case apply.Queue:
		_, err = either(s, b.CreateQueue, b.UpdateQueue)(ctx, *s.NewQueue)
	case apply.Topic:
		_, err = either(s, b.CreateTopic, b.UpdateTopic)(ctx, *s.NewTopic)
	case apply.Subscription:
		_, err = either(s, b.CreateSubscription, b.UpdateSubscription)(ctx, s.Topic, *s.NewSubscription)
	case apply.Rule:
		_, err = either(s, b.CreateRule, b.UpdateRule)(ctx, s.Topic, s.Subscription, *s.NewRule)
	case apply.Hub:
		_, err = either(s, b.CreateHub, b.UpdateHub)(ctx, *s.NewHub)
	case apply.Group:
		_, err = either(s, b.CreateConsumerGroup, b.UpdateConsumerGroup)(ctx, s.Hub, *s.NewGroup)
	}
	return err
}

// either returns what a step asks for.
func either[F any](s apply.Step, create, update F) F {
	if s.Verb == apply.Create {
		return create
	}
	return update
}
