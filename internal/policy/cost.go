// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/triagemq/triagemq/internal/filter"

// What the parts of a policy take in memory, with what the allocator adds.
const (
	policyCost = 512
	shareCost  = 128 // a fair key with settings of its own
	classCost  = 256
	// measuredCost is what the measurements of a class take when it has had messages:
	// histograms of how long they waited, were processed, and both.
	measuredCost = 1024 + 3*5376
	// policyCopies is how often a compiled policy is there: for those who classify messages
	// and for the monitor of the queue.
	policyCopies = 2
	// shareCopies is how often a fair key is there: in each compiled policy, in the limits
	// of sending, in the settings of the queue and in its order.
	shareCopies = policyCopies + 3
)

// Cost returns how much memory a queue takes for its policy, about: for the compiled policy
// wherever it is kept, and for the measurements of its classes.
func (p *Policy) Cost() int64 {
	size := int64(policyCost + len(p.FairKey) + len(p.Alerts.Webhook) + len(p.Alerts.Secret))
	if p.fairKey != nil {
		size += filter.Cost(p.fairKey)
	}
	size *= policyCopies
	for i := range p.Classes {
		size += p.Classes[i].cost()
	}
	for i := range p.Keys {
		size += shareCopies*shareCost + policyCopies*int64(len(p.Keys[i].Key))
	}
	return size
}

func (c *Class) cost() int64 {
	size := int64(classCost + len(c.Name) + len(c.When))
	if c.when != nil {
		size += filter.Cost(c.when)
	}
	return policyCopies*size + measuredCost
}
