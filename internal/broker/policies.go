// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// classifier says what messages are worth by one policy. It may be used by any
// goroutine.
type classifier struct {
	policy *policy.Policy
	plain  bool // there is nothing to look at but the message's own wish
	// unknown counts the messages whose priority nobody knows, under earlier policies
	// of the entity too.
	unknown *atomic.Uint64
	spare   sync.Pool // of *filter.Envelope
}

func newClassifier(p *policy.Policy) *classifier {
	c := &classifier{policy: p, unknown: new(atomic.Uint64), plain: len(p.Classes) == 0 && p.FairKey == ""}
	c.spare.New = func() any { return &filter.Envelope{IDs: newID} }
	return c
}

func (c *classifier) verdict(m *message.Message) policy.Classification {
	if c.plain {
		return policy.Classification{Level: policy.Level(m)}
	}
	e := c.spare.Get().(*filter.Envelope)
	e.Message = m
	v := c.policy.Classify(e)
	c.spare.Put(e)
	return v
}

// derivePolicy compiles the policy, unless it is the one there was before.
func (d *definition) derivePolicy(before *definition, parse func([]byte) (*policy.Policy, error)) error {
	if before != nil && bytes.Equal(before.queue.Policy, d.queue.Policy) {
		d.worth = before.worth
		return nil
	}
	p, err := parse(d.queue.Policy)
	if err != nil {
		return err
	}
	switch {
	case before != nil:
		d.PolicyRevision = before.PolicyRevision + 1
	case len(d.queue.Policy) > 0:
		d.PolicyRevision = max(d.PolicyRevision, 1)
	}
	p.Revision = d.PolicyRevision
	d.worth = newClassifier(p)
	if before != nil {
		d.worth.unknown = before.worth.unknown
	}
	return nil
}

// compact returns a policy in the one form in which it is compared and stored;
// nil if there is none.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.String() == "null" {
		return nil // what is no JSON was refused before
	}
	return b.Bytes()
}

// replaced returns the policy after an update that may not speak of it.
func replaced(old, next json.RawMessage) json.RawMessage {
	if len(next) == 0 {
		return old
	}
	return compact(next)
}

// PolicyState is the policy of a queue or subscription as it stands.
type PolicyState struct {
	Entity   string `json:"entity"`
	Revision int64  `json:"revision"` // zero if there never was one
	// Applied says that what waits was classified by it.
	Applied      bool            `json:"applied"`
	Policy       json.RawMessage `json:"policy"`
	Warnings     []string        `json:"warnings"`
	Consequences []string        `json:"consequences"`
}

func policyState(n *node, d *definition) PolicyState {
	s := PolicyState{
		Entity: n.path, Revision: d.PolicyRevision, Applied: d.Classified == d.PolicyRevision,
		Policy: d.queue.Policy,
	}
	if s.Policy == nil {
		s.Policy = json.RawMessage("{}")
	}
	s.Warnings, s.Consequences = advice(d, d.worth.policy)
	return s
}

// advice tells what is doubtful about a policy of a queue, and what follows from
// it.
func advice(d *definition, p *policy.Policy) (warnings, consequences []string) {
	lock := d.queue.LockDuration.Std()
	warnings = []string{}
	for _, w := range p.Warnings(lock) {
		warnings = append(warnings, w.Error())
	}
	return warnings, p.Consequences(lock)
}

// Policy returns the policy of a queue or subscription.
func (b *Broker) Policy(addr string) (PolicyState, error) {
	n, err := b.ranked(addr)
	if err != nil {
		return PolicyState{}, err
	}
	return policyState(n, n.def.Load()), nil
}

// ranked returns the node of an address that can have a policy.
func (b *Broker) ranked(addr string) (*node, error) {
	n, _, err := b.find(addr)
	if err == nil && n.kind == KindTopic {
		return nil, fmt.Errorf("%w: %q is a topic; its subscriptions have policies", ErrNotAllowed, n.path)
	}
	return n, err
}

// SetPolicy gives a queue or subscription another policy; null takes it away. The
// new one holds for the next message at once. What waits is classified anew and put
// into its order, each message keeping its age; SetPolicy returns when that is done,
// and if ctx ends before, it goes on.
func (b *Broker) SetPolicy(ctx context.Context, addr string, raw []byte) (PolicyState, error) {
	p, err := parsePolicy(raw)
	if err != nil {
		return PolicyState{}, err
	}
	var n *node
	err = b.change(ctx, func() error {
		if n, err = b.ranked(addr); err != nil {
			return err
		}
		def := *n.def.Load()
		if p.Revision != 0 && p.Revision != def.PolicyRevision {
			return fmt.Errorf("%w: the policy of %q is at revision %d, not %d", ErrInvalid, n.path, def.PolicyRevision, p.Revision)
		}
		def.setPolicy(raw)
		return b.redefine(n, def)
	})
	if err != nil {
		return PolicyState{}, err
	}
	if err := b.reclasser.wait(ctx, n); err != nil {
		return PolicyState{}, err
	}
	if err := b.reordered(ctx, n); err != nil {
		return PolicyState{}, err
	}
	return policyState(n, n.def.Load()), nil
}

// reordered returns when the messages of a queue are in the order of its policy.
func (b *Broker) reordered(ctx context.Context, n *node) error {
	_, err := shard.Do(ctx, n.shard, shard.AwaitOrder{ID: n.id})
	return err
}

func parsePolicy(raw []byte) (*policy.Policy, error) {
	p, err := policy.Parse(raw)
	return p, invalid(err)
}

// setPolicy changes the policy of a copy of a definition. The revision that a
// user names is the one he has seen, not one to store.
func (d *definition) setPolicy(raw []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil && fields["revision"] != nil {
		delete(fields, "revision")
		raw, _ = json.Marshal(fields) // what was read can be written
	}
	switch d.Kind {
	case KindQueue:
		q := *d.Queue
		q.Policy = compact(raw)
		d.Queue = &q
	case KindSubscription:
		s := *d.Subscription
		s.Policy = compact(raw)
		d.Subscription = &s
	}
}

// ClassName returns the name of the class that a message of the queue or subscription at
// addr is in; none if it is in no class, or the entity is gone.
func (b *Broker) ClassName(addr string, class queue.Class) string {
	n, _, err := b.find(addr)
	if err != nil || class == 0 {
		return ""
	}
	if worth := n.def.Load().worth; worth != nil {
		return worth.policy.ClassName(uint8(class))
	}
	return ""
}
