// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/broker/catalog/validate"
	"github.com/triagemq/triagemq/internal/entity"
)

// CreateQueue creates a queue and returns it with its defaults filled in.
func (c *Catalog) CreateQueue(ctx context.Context, q entity.Queue) (entity.Queue, error) {
	q = q.WithDefaults()
	if q.Validate() != nil {
		return entity.Queue{}, c.Compiling(ctx, func() error { return check(validate.Queue(q)) })
	}
	q.Policy = compact(q.Policy)
	err := c.Change(ctx, func() error {
		if err := c.checkKeys(q, nil); err != nil {
			return err
		}
		if err := c.checkForwards(q.Name, "", q.ForwardTo); err != nil {
			return err
		}
		if err := c.checkTarget("", q.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		n := &Entity{Kind: KindQueue, Path: q.Name, Shard: c.shardFor(q.Name)}
		return c.create(n, &Definition{Kind: KindQueue, Queue: &q})
	})
	return q, err
}

// batch is how many queues are created at a time.
const batch = 1000

// CreateQueues creates queues that forward to nothing as CreateQueue does, and returns an
// error for each, nil if there is none. Many share a write to the disk. A queue that was
// created exists, whatever becomes of the others.
func (c *Catalog) CreateQueues(ctx context.Context, qs []entity.Queue) []error {
	errs := make([]error, len(qs))
	for from := 0; from < len(qs); from += batch {
		to := min(from+batch, len(qs))
		if err := c.Change(ctx, func() error {
			c.createQueues(qs[from:to], errs[from:to])
			return nil
		}); err != nil {
			for i := from; i < len(errs); i++ {
				errs[i] = err
			}
			return errs
		}
	}
	return errs
}

// createQueues creates a batch of queues. It is called within Change.
func (c *Catalog) createQueues(qs []entity.Queue, errs []error) {
	var wg sync.WaitGroup
	made := make(map[string]bool, len(qs))
	var begun []*creation
	var at []int // of begun, in qs
	for i, q := range qs {
		p, err := c.prepareQueue(q.WithDefaults(), made)
		if err != nil {
			errs[i] = err
			continue
		}
		begun, at = append(begun, p), append(at, i)
		wg.Go(func() { p.store(c) })
	}
	wg.Wait()
	for i, p := range begun {
		errs[at[i]] = c.finish(p)
	}
}

// prepareQueue is prepare for a queue that forwards to nothing. made has the names of the
// others that are being created.
func (c *Catalog) prepareQueue(q entity.Queue, made map[string]bool) (*creation, error) {
	if q.Validate() != nil {
		return nil, check(validate.Queue(q))
	}
	key := entity.Key(q.Name)
	switch {
	case q.ForwardTo != "" || q.ForwardDeadLetteredMessagesTo != "":
		return nil, fmt.Errorf("%w: queue %q forwards, and cannot be created together with others", ErrInvalid, q.Name)
	case made[key]:
		return nil, fmt.Errorf("%w: %q is being created", ErrExists, q.Name)
	}
	if err := c.checkKeys(q, nil); err != nil {
		return nil, err
	}
	q.Policy = compact(q.Policy)
	p, err := c.prepare(&Entity{Kind: KindQueue, Path: q.Name, Shard: c.shardFor(q.Name)}, &Definition{Kind: KindQueue, Queue: &q}, len(made))
	if err == nil {
		made[key] = true
	}
	return p, err
}

// UpdateQueue changes a queue; a change of a fixed property is an entity.UpdateError.
// Without a policy the present one stays; null removes it.
func (c *Catalog) UpdateQueue(ctx context.Context, q entity.Queue) (entity.Queue, error) {
	q = q.WithDefaults()
	if q.Validate() != nil {
		return entity.Queue{}, c.Compiling(ctx, func() error { return check(validate.Queue(q)) })
	}
	err := c.Change(ctx, func() error {
		n, err := c.kind(q.Name, KindQueue)
		if err != nil {
			return err
		}
		def := *n.Definition()
		if err := def.Queue.CheckUpdate(q); err != nil {
			return Invalid(err)
		}
		if err := c.checkKeys(q, def.Queue.AuthorizationRules); err != nil {
			return err
		}
		if err := c.checkForwards(q.Name, def.Queue.ForwardTo, q.ForwardTo); err != nil {
			return err
		}
		if err := c.checkTarget(def.Queue.ForwardDeadLetteredMessagesTo, q.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		q.Name = def.Queue.Name
		q.Policy = replaced(def.Queue.Policy, q.Policy)
		def.Queue = &q
		return c.redefine(n, def)
	})
	return q, err
}

// Queue returns the definition of a queue.
func (c *Catalog) Queue(name string) (entity.Queue, error) {
	n, err := c.kind(name, KindQueue)
	if err != nil {
		return entity.Queue{}, err
	}
	return *n.Definition().Queue, nil
}

// Queues returns the definitions of all queues, by name.
func (c *Catalog) Queues() []entity.Queue { return slices.Collect(c.AllQueues()) }

// AllQueues yields the definitions of all queues, by name.
func (c *Catalog) AllQueues() iter.Seq[entity.Queue] {
	return func(yield func(entity.Queue) bool) {
		for _, n := range c.Entities() {
			if n.Kind == KindQueue && !yield(*n.Definition().Queue) {
				return
			}
		}
	}
}

// DeleteQueue removes a queue with all its messages and dead letters.
func (c *Catalog) DeleteQueue(ctx context.Context, name string) error {
	return c.Change(ctx, func() error {
		n, err := c.kind(name, KindQueue)
		if err != nil {
			return err
		}
		return c.remove(n)
	})
}

// Pause suspends or resumes a queue or subscription.
func (c *Catalog) Pause(ctx context.Context, addr string, p Pause) error {
	return c.Change(ctx, func() error {
		n, _, err := c.Find(addr)
		if err != nil {
			return err
		}
		def := *n.Definition()
		def.Paused = p
		return c.redefine(n, def)
	})
}

// Paused returns which operations of an entity are suspended.
func (c *Catalog) Paused(addr string) (Pause, error) {
	n, _, err := c.Find(addr)
	if err != nil {
		return Pause{}, err
	}
	return n.Definition().Paused, nil
}

// kind returns the entity of that name if it is of that kind.
func (c *Catalog) kind(name string, k Kind) (*Entity, error) {
	n := c.Entity(name)
	switch {
	case n != nil && n.Kind == k:
		return n, nil
	case n != nil && (k == KindHub || n.Kind == KindHub):
		return nil, fmt.Errorf("%w: %s %q: it is a %s", ErrNotFound, k, name, n.Kind)
	}
	return nil, fmt.Errorf("%w: %s %q", ErrNotFound, k, name)
}

// checkTarget rejects forwarding to an entity that does not exist, unless the target is
// unchanged: a target may be deleted and created again. It is called within Change.
func (c *Catalog) checkTarget(before, to string) error {
	if to == "" || entity.SameTarget(before, to) {
		return nil
	}
	p, err := entity.ParsePath(to)
	if err != nil {
		return Invalid(err)
	}
	n := c.Entity(p.Entity)
	switch {
	case n == nil:
		return fmt.Errorf("%w: the auto forwarding destination entity %q does not exist", ErrInvalid, to)
	case n.Kind == KindHub:
		return fmt.Errorf("%w: the auto forwarding destination entity %q is an event hub; it has to be a queue or topic", ErrInvalid, to)
	}
	return nil
}

// checkForwards rejects a forward to an entity that does not exist, and one that leads
// back to where it starts: the queue from, or the topic from whose subscription forwards.
// It follows queues, and of topics all subscriptions, whatever their rules match.
// Forwarded dead letters are not followed: a later return is what they are used for. An
// unchanged target is not checked. It is called within Change.
func (c *Catalog) checkForwards(from, before, to string) error {
	if entity.SameTarget(before, to) {
		return nil
	}
	if err := c.checkTarget(before, to); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for next := []string{to}; len(next) > 0; {
		target := next[0]
		next = next[1:]
		if target == "" {
			continue
		}
		p, err := entity.ParsePath(target)
		if err != nil {
			return Invalid(err)
		}
		key := entity.Key(p.Entity)
		if key == entity.Key(from) {
			return fmt.Errorf("%w: forwarding from %q to %q comes back to %q", ErrInvalid, from, to, from)
		}
		n := c.Entity(p.Entity)
		if n == nil || seen[key] {
			continue
		}
		seen[key] = true
		if n.Kind == KindQueue {
			next = append(next, n.Definition().Properties.ForwardTo)
			continue
		}
		for _, sub := range c.SubscriptionsOf(n) {
			next = append(next, sub.Definition().Properties.ForwardTo)
		}
	}
	return nil
}
