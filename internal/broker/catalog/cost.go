// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
)

// What the parts of a definition take in memory, with what the allocator adds. TestCost
// compares them with the heap.
const (
	// entityCost is what an entity takes without messages: its queues, their monitor, its
	// definition and its places in tables.
	entityCost = 11 << 10
	// partitionCost is what a partition of an event hub takes without events.
	partitionCost = 1 << 10
	// hubCost is what the journal and the engine of a hub take.
	hubCost = 96 << 10
	// forwarderCost is what it takes to forward from a queue.
	forwarderCost = 2 << 10
	// ruleCost is what a rule takes besides its texts and what it is compiled to: in the
	// definition, compiled, and in the routes of its topic.
	ruleCost = 448
	// correlationCost is what a correlation filter takes in the definition.
	correlationCost = 144
	// valuesCost and valueCost are what parameters, or the properties of a correlation filter,
	// take in the definition.
	valuesCost, valueCost = 640, 144
	// keyCost is what an authorization rule takes, and groupCost a consumer group.
	keyCost, groupCost = 320, 128

	// costSlack is what an entity is charged beyond its cost, so that it can be paused,
	// disabled or classified when no memory is left.
	costSlack = 256
)

// cost returns how much memory an entity takes for its definition, about. meta is the
// length of the definition in JSON. It is there twice: as it is stored, and decoded.
func (d *Definition) cost(meta int) int64 {
	size := entityCost + 2*int64(meta-d.flagsLength()) + d.Classifier.Policy.Cost()
	size += keyCost * int64(len(d.authorization()))
	if d.Properties.ForwardTo != "" {
		size += forwarderCost
	}
	if d.Properties.ForwardDeadLetteredMessagesTo != "" {
		size += forwarderCost
	}
	if d.Kind == KindHub {
		size += hubCost + partitionCost*int64(d.Hub.PartitionCount) + groupCost*int64(len(d.Hub.ConsumerGroups))
	}
	for i := range d.rules {
		size += d.rules[i].cost()
	}
	return size
}

// flagsLength returns about how many bytes of the JSON say what an operator must be able to
// change at any time.
func (d *Definition) flagsLength() int {
	n := len(d.Properties.Status)
	if d.Paused != (Pause{}) {
		n += len(`"paused":{"sending":true,"receiving":true},`)
	}
	return n
}

func (r *compiledRule) cost() int64 {
	size := ruleCost + filter.Cost(r.filter) + r.action.Cost()
	size += valuesSize(r.from.Filter.Parameters) + valuesSize(r.from.Action.Parameters)
	if c := r.from.Filter.Correlation; c != nil {
		size += correlationCost + valuesSize(c.Properties)
	}
	return size
}

func valuesSize(values map[string]entity.Value) int64 {
	if len(values) == 0 {
		return 0
	}
	return valuesCost + valueCost*int64(len(values))
}

// ChargeDefinitions has the memory that definitions take charged to an account. What there
// is already is charged whether there is space for it or not; a definition that is new or
// grows is then refused when there is none. It is called before the catalog is used.
func (c *Catalog) ChargeDefinitions(a *budget.Account) {
	c.memory = a
	for _, n := range c.Entities() {
		a.Charge(n.charged)
	}
	for _, subs := range c.withoutTopic {
		for _, n := range subs {
			a.Charge(n.charged)
		}
	}
	if used, limit := a.Used(), a.Limit(); used > limit {
		c.log.Warn("the definitions of entities take more memory than they may: none can be added, and none can grow; "+
			"raise limits.storedMemory or delete entities", "bytes", used, "limit", limit)
	}
}

// DefinitionMemory returns how much memory the definitions of entities take, about, and how
// much they may.
func (c *Catalog) DefinitionMemory() (used, limit int64) { return c.memory.Used(), c.memory.Limit() }

// DefinitionsExceeded reports whether definitions take more memory than they may, as after a
// start with less memory.
func (c *Catalog) DefinitionsExceeded() bool { return c.memory.Used() > c.memory.Limit() }

// takeMemory charges what a changed definition of an entity takes more than before, if there
// is space. It is called within Change, before the definition is stored.
func (c *Catalog) takeMemory(n *Entity, cost int64) (taken int64, err error) {
	if cost <= n.charged {
		return 0, nil
	}
	taken = cost + costSlack - n.charged
	if c.sharing && taken > c.share(n) || !c.tryTake(taken) {
		return 0, c.noMemory(n, taken)
	}
	return taken, nil
}

// managersPart is which part of the memory for definitions is for keys that manage the
// namespace: one in so many.
const managersPart = 16

// share returns how much more the definition of an entity may take if its own manager changes it:
// no more than is still free afterwards, for a topic with all its subscriptions. The first can have
// half of what is not kept for those who manage the namespace, the next one half of the rest.
// It is called within Change.
func (c *Catalog) share(n *Entity) int64 {
	top := n
	if n.Topic != nil {
		top = n.Topic
	}
	has := top.charged
	for _, sub := range c.SubscriptionsOf(top) {
		has += sub.charged
	}
	return max(c.unkept()-has, 0) / 2
}

// unkept returns how much is free but for what is kept for those who manage the namespace.
func (c *Catalog) unkept() int64 { return c.memory.Available() - c.memory.Limit()/managersPart }

// BorrowMemory charges what a definition of an entity takes that is tried and not stored,
// until release is called.
func (c *Catalog) BorrowMemory(ctx context.Context, n *Entity, cost int64) (release func(), err error) {
	if shares(ctx) && cost > c.unkept()/2 || !c.memory.TryTake(cost) {
		return nil, c.noMemory(n, cost)
	}
	return sync.OnceFunc(func() { c.memory.Release(cost) }), nil
}

// tryTake takes memory if there is some. Other stored state may have used up what all of it may
// take: then those who manage the namespace may take an eighth more.
func (c *Catalog) tryTake(bytes int64) bool {
	return c.memory.TryTake(bytes) || !c.sharing && c.memory.Used()+bytes <= c.memory.Limit() && c.memory.TakeBeyond(bytes)
}

// shortError means that some rules of a definition alone take more memory than there is.
type shortError struct{ size int64 }

func (e *shortError) Error() string {
	return fmt.Sprintf("catalog: the first of the rules take %d bytes", e.size)
}

// available returns how much memory a changed definition of an entity may take.
func (c *Catalog) available(n *Entity) int64 {
	if c.sharing {
		return n.charged + c.share(n)
	}
	return n.charged + max(c.memory.Available(), 0)
}

// underivable says why a changed definition of an entity is refused.
func (c *Catalog) underivable(n *Entity, err error) error {
	if e, ok := errors.AsType[*shortError](err); ok {
		return c.noMemory(n, e.size-n.charged)
	}
	return Invalid(err)
}

func (c *Catalog) noMemory(n *Entity, bytes int64) error {
	return fmt.Errorf("%w of %q: it needs %d bytes more, and all definitions take %d of %d, and who manages only one entity can have as much as is free then; "+
		"delete entities, rules or policies, or raise limits.storedMemory",
		ErrDefinitionMemory, n.Path, bytes, c.memory.Used(), c.memory.Limit())
}

// settleMemory records what was taken for the definition of an entity when it is stored, and
// releases what it needs no more.
func (c *Catalog) settleMemory(n *Entity, taken, cost int64) {
	n.charged += taken
	if over := n.charged - cost - costSlack; over > costSlack {
		c.memory.Release(over)
		n.charged -= over
	}
}
