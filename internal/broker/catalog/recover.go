// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// recoverShard adds the definitions of one shard. Topics come before their
// subscriptions, whose properties follow from them in part.
func (c *Catalog) recoverShard(s *queueserver.Shard) error {
	type found struct {
		queueserver.Definition
		def *Definition
	}
	var all []found
	for _, sd := range c.store.Load(s) {
		def, err := decodeDefinition(sd.Meta)
		if err != nil {
			return fmt.Errorf("recover %q: %w", sd.Name, err)
		}
		all = append(all, found{sd, def})
	}
	slices.SortStableFunc(all, func(x, y found) int {
		return cmp.Compare(order(x.def.Kind), order(y.def.Kind))
	})
	for _, f := range all {
		n := &Entity{Kind: f.def.Kind, Path: f.Name, Shard: s, ID: f.ID}
		var topic *Definition
		if n.Kind == KindSubscription {
			p, err := entity.ParsePath(f.Name)
			if err != nil {
				return fmt.Errorf("recover %q: %w", f.Name, err)
			}
			n.Topic = c.nodes[entity.Key(p.Entity)]
			if n.Topic == nil || n.Topic.Kind != KindTopic {
				n.charged = entityCost + 2*int64(len(f.Meta))
				c.leaveOut(n, f.def, p.Entity)
				continue
			}
			topic = n.Topic.Definition()
		}
		if err := f.def.derive(topic, nil, policy.ParseStored, math.MaxInt64); err != nil {
			return fmt.Errorf("recover %q: %w", f.Name, err)
		}
		n.def.Store(f.def)
		n.charged = f.def.cost(len(f.Meta)) + costSlack
		c.add(n)
	}
	return nil
}

func order(k Kind) int {
	return slices.Index([]Kind{KindQueue, KindTopic, KindHub, KindSubscription}, k)
}

// leaveOut keeps a subscription for when its topic is created again. The topic is lost
// only if a repair of the journal has dropped its definition.
func (c *Catalog) leaveOut(n *Entity, def *Definition, topic string) {
	c.log.Warn("subscription is not served, since its topic is lost: create the topic again", "entity", n.Path, "topic", topic)
	n.def.Store(def)
	key := entity.Key(topic)
	c.withoutTopic[key] = append(c.withoutTopic[key], n)
}

// takeBack adds the subscriptions that were left out to their topic, which was created
// again. It is called within Change.
func (c *Catalog) takeBack(topic *Entity) error {
	key := entity.Key(topic.Path)
	subs := c.withoutTopic[key]
	delete(c.withoutTopic, key)
	for _, n := range subs {
		def := *n.Definition()
		if err := def.derive(topic.Definition(), nil, policy.ParseStored, math.MaxInt64); err != nil {
			return fmt.Errorf("recover %q: %w", n.Path, err)
		}
		meta, err := def.encode()
		if err != nil {
			return err
		}
		taken := def.cost(len(meta)) + costSlack - n.charged
		c.memory.Charge(taken)
		n.charged += taken
		n.Topic = topic
		n.def.Store(&def)
		c.add(n)
		if err := c.redefine(n, def); err != nil { // some of its limits are the topic's
			return err
		}
		c.log.Info("subscription is served again, with its messages", "entity", n.Path)
	}
	c.reroute(topic)
	return nil
}
