// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/entity"
)

// forward is a forwardTo or forwardDeadLetteredMessagesTo of a configuration.
type forward struct {
	path     string
	from, to string // as written: the queue or the topic of the subscription, and its target
	target   string // key of the queue or topic that to names
	dead     bool   // it forwards dead letters
}

// TargetsElsewhere returns, as faults with their lines, forwards to what the configuration
// does not have. They are faults for a broker that does not have it either.
func (c Config) TargetsElsewhere() Faults {
	here := map[string]bool{}
	for _, q := range c.Queues {
		here[entity.Key(q.Name)] = true
	}
	for _, t := range c.Topics {
		here[entity.Key(t.Name)] = true
	}
	for _, h := range c.Hubs { // a fault already
		here[entity.Key(h.Name)] = true
	}
	var fs Faults
	for _, f := range c.forwards() {
		if !here[f.target] {
			fs = append(fs, c.Fault(f.path, fmt.Sprintf("%q is not in the file", f.to)))
		}
	}
	return fs
}

// hubTargetFaults finds forwards to an event hub, which takes no messages of queues.
func (c Config) hubTargetFaults() Faults {
	hubs := map[string]bool{}
	for _, h := range c.Hubs {
		hubs[entity.Key(h.Name)] = true
	}
	var fs Faults
	for _, f := range c.forwards() {
		if hubs[f.target] {
			fs = append(fs, c.Fault(f.path, fmt.Sprintf("%q is an event hub; only queues and topics can be forwarded to", f.to)))
		}
	}
	return fs
}

// circleFaults finds circles of forwarding, which the broker rejects. Circles
// of dead letters are allowed. A queue that forwards to itself is found
// elsewhere.
func (c Config) circleFaults() Faults {
	all := c.forwards()
	next := make(map[string][]string, len(all)) // targets by the key of what forwards
	for _, f := range all {
		if !f.dead {
			next[entity.Key(f.from)] = append(next[entity.Key(f.from)], f.target)
		}
	}
	var fs Faults
	for _, f := range all {
		if !f.dead && leads(next, f.target, entity.Key(f.from)) {
			fs = append(fs, c.Fault(f.path, fmt.Sprintf("forwarding to %q leads back to %q", f.to, f.from)))
		}
	}
	return fs
}

func (c Config) forwards() []forward {
	var all []forward
	add := func(path, from, to, deadTo string) {
		for _, f := range []forward{
			{path: path + ".forwardTo", from: from, to: to},
			{path: path + ".forwardDeadLetteredMessagesTo", from: from, to: deadTo, dead: true},
		} {
			p, err := entity.ParsePath(f.to)
			if f.to != "" && err == nil && p == (entity.Path{Entity: p.Entity}) {
				f.target = entity.Key(p.Entity)
				all = append(all, f)
			}
		}
	}
	for i, q := range c.Queues {
		if entity.Key(q.ForwardTo) == entity.Key(q.Name) {
			q.ForwardTo = ""
		}
		add(fmt.Sprintf("queues[%d]", i), q.Name, q.ForwardTo, q.ForwardDeadLetteredMessagesTo)
	}
	for i, t := range c.Topics {
		for j, s := range t.Subscriptions {
			add(fmt.Sprintf("topics[%d].subscriptions[%d]", i, j), t.Name, s.ForwardTo, s.ForwardDeadLetteredMessagesTo)
		}
	}
	return all
}

// leads reports whether forwards lead from one entity to another.
func leads(next map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	for open := []string{from}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		if at == to {
			return true
		}
		if !seen[at] {
			seen[at] = true
			open = append(open, next[at]...)
		}
	}
	return false
}
