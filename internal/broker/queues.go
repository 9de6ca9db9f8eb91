// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"

	"github.com/triagemq/triagemq/internal/entity"
)

// CreateQueue makes a queue and returns it with its defaults filled in.
func (b *Broker) CreateQueue(ctx context.Context, q entity.Queue) (entity.Queue, error) {
	q = q.WithDefaults()
	if q.Validate() != nil {
		return entity.Queue{}, check(QueueFaults(q))
	}
	q.Policy = compact(q.Policy)
	err := b.change(ctx, func() error {
		if err := b.checkKeys(q, nil); err != nil {
			return err
		}
		if err := b.checkForwards(q.Name, "", q.ForwardTo); err != nil {
			return err
		}
		if err := b.checkTarget("", q.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		n := &node{kind: KindQueue, path: q.Name, shard: b.home(q.Name)}
		return b.create(n, &definition{Kind: KindQueue, Queue: &q})
	})
	return q, err
}

// UpdateQueue changes a queue; what may not change is an entity.UpdateError.
// Without a policy the one it has stays; null takes it away.
func (b *Broker) UpdateQueue(ctx context.Context, q entity.Queue) (entity.Queue, error) {
	q = q.WithDefaults()
	if q.Validate() != nil {
		return entity.Queue{}, check(QueueFaults(q))
	}
	err := b.change(ctx, func() error {
		n, err := b.kind(q.Name, KindQueue)
		if err != nil {
			return err
		}
		def := *n.def.Load()
		if err := def.Queue.CheckUpdate(q); err != nil {
			return invalid(err)
		}
		if err := b.checkKeys(q, def.Queue.AuthorizationRules); err != nil {
			return err
		}
		if err := b.checkForwards(q.Name, def.Queue.ForwardTo, q.ForwardTo); err != nil {
			return err
		}
		if err := b.checkTarget(def.Queue.ForwardDeadLetteredMessagesTo, q.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		q.Name = def.Queue.Name
		q.Policy = replaced(def.Queue.Policy, q.Policy)
		def.Queue = &q
		return b.redefine(n, def)
	})
	return q, err
}

// Queue returns the definition of a queue.
func (b *Broker) Queue(name string) (entity.Queue, error) {
	n, err := b.kind(name, KindQueue)
	if err != nil {
		return entity.Queue{}, err
	}
	return *n.def.Load().Queue, nil
}

// Queues returns the definitions of all queues, by name.
func (b *Broker) Queues() []entity.Queue {
	var qs []entity.Queue
	for _, n := range b.sorted() {
		if n.kind == KindQueue {
			qs = append(qs, *n.def.Load().Queue)
		}
	}
	return qs
}

// DeleteQueue removes a queue with all its messages and dead letters.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error {
	return b.change(ctx, func() error {
		n, err := b.kind(name, KindQueue)
		if err != nil {
			return err
		}
		return b.remove(n)
	})
}

// Pause suspends a queue or subscription, or lets it go on.
func (b *Broker) Pause(ctx context.Context, addr string, p Pause) error {
	return b.change(ctx, func() error {
		n, _, err := b.find(addr)
		if err != nil {
			return err
		}
		def := *n.def.Load()
		def.Paused = p
		return b.redefine(n, def)
	})
}

// Paused returns what of an entity is suspended.
func (b *Broker) Paused(addr string) (Pause, error) {
	n, _, err := b.find(addr)
	if err != nil {
		return Pause{}, err
	}
	return n.def.Load().Paused, nil
}

// kind returns the entity of that name if it is of that kind.
func (b *Broker) kind(name string, k Kind) (*node, error) {
	n := b.node(name)
	if n == nil || n.kind != k {
		return nil, fmt.Errorf("%w: %s %q", ErrNotFound, k, name)
	}
	return n, nil
}

// checkTarget refuses to forward to what does not exist, unless it was so before: a
// target may be deleted, and made again. It is called within change.
func (b *Broker) checkTarget(before, to string) error {
	if to == "" || entity.SameTarget(before, to) {
		return nil
	}
	p, err := entity.ParsePath(to)
	if err != nil {
		return invalid(err)
	}
	if b.node(p.Entity) == nil {
		return fmt.Errorf("%w: the auto forwarding destination entity %q does not exist", ErrInvalid, to)
	}
	return nil
}

// checkForwards refuses a forward to what does not exist, and one that leads back to
// where it starts: the queue from, or the topic from whose subscription forwards. It
// follows queues, and of topics all subscriptions, whatever their rules let through.
// Forwarded dead letters are not followed: to come back after a while is what they
// are used for. What was so before is not checked. It is called within change.
func (b *Broker) checkForwards(from, before, to string) error {
	if entity.SameTarget(before, to) {
		return nil
	}
	if err := b.checkTarget(before, to); err != nil {
		return err
	}
	var subs map[*node][]*node // by topic; made when the first topic is met
	seen := make(map[string]bool)
	for next := []string{to}; len(next) > 0; {
		target := next[0]
		next = next[1:]
		if target == "" {
			continue
		}
		p, err := entity.ParsePath(target)
		if err != nil {
			return invalid(err)
		}
		key := entity.Key(p.Entity)
		if key == entity.Key(from) {
			return fmt.Errorf("%w: forwarding from %q to %q comes back to %q", ErrInvalid, from, to, from)
		}
		n := b.node(p.Entity)
		if n == nil || seen[key] {
			continue
		}
		seen[key] = true
		if n.kind == KindQueue {
			next = append(next, n.def.Load().queue.ForwardTo)
			continue
		}
		if subs == nil {
			subs = b.subscriptionsByTopic()
		}
		for _, sub := range subs[n] {
			next = append(next, sub.def.Load().queue.ForwardTo)
		}
	}
	return nil
}

// subscriptionsByTopic returns the subscriptions of all topics, in no order.
func (b *Broker) subscriptionsByTopic() map[*node][]*node {
	b.mu.RLock()
	defer b.mu.RUnlock()
	subs := make(map[*node][]*node)
	for _, n := range b.nodes {
		if n.topic != nil {
			subs[n.topic] = append(subs[n.topic], n)
		}
	}
	return subs
}
