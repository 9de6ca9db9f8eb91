// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Classifier assigns class and level to messages by one policy. It may be used by any
// goroutine.
type Classifier struct {
	Policy *policy.Policy
	plain  bool // the level is that of the message itself
	// Unknown counts the messages with an unknown priority, those under earlier policies of
	// the entity included.
	Unknown *atomic.Uint64
	spare   sync.Pool // of *filter.Envelope
	effort  effort    // of its conditions
}

// NewClassifier returns the classifier of a policy.
func NewClassifier(p *policy.Policy) *Classifier {
	c := &Classifier{Policy: p, Unknown: new(atomic.Uint64), plain: len(p.Classes) == 0 && p.FairKey == ""}
	c.spare.New = func() any { return &filter.Envelope{IDs: newID} }
	return c
}

func (c *Classifier) Classify(m *message.Message) policy.Classification {
	v, _ := c.classify(m)
	return v
}

// classify is Classify, which also returns about how many steps that took.
func (c *Classifier) classify(m *message.Message) (v policy.Classification, steps int) {
	if c.plain {
		return policy.Classification{Level: policy.Level(m)}, 0
	}
	e := c.spare.Get().(*filter.Envelope)
	e.Message = m
	v, steps = c.Policy.ClassifyCounting(e)
	c.spare.Put(e)
	c.effort.note(steps)
	return v, steps
}

// derivePolicy compiles the policy, unless it is the one there was before.
func (d *Definition) derivePolicy(before *Definition, parse func([]byte) (*policy.Policy, error)) error {
	if before != nil && bytes.Equal(before.Properties.Policy, d.Properties.Policy) {
		d.Classifier = before.Classifier
		return nil
	}
	p, err := parse(d.Properties.Policy)
	if err != nil {
		return err
	}
	switch {
	case before != nil:
		d.PolicyRevision = before.PolicyRevision + 1
	case len(d.Properties.Policy) > 0:
		d.PolicyRevision = max(d.PolicyRevision, 1)
	}
	p.Revision = d.PolicyRevision
	d.Classifier = NewClassifier(p)
	if before != nil {
		d.Classifier.Unknown = before.Classifier.Unknown
		d.Classifier.effort.until.Store(before.Classifier.effort.until.Load()) // it may be expensive again
	}
	return nil
}

// compact returns a policy in the form in which it is compared and stored; nil if there is
// none.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil || b.String() == "null" {
		return nil // invalid JSON was rejected before
	}
	return b.Bytes()
}

// replaced returns the policy after an update, which keeps the old one if it has none.
func replaced(old, next json.RawMessage) json.RawMessage {
	if len(next) == 0 {
		return old
	}
	return compact(next)
}

// PolicyState is the present policy of a queue or subscription.
type PolicyState struct {
	Entity   string `json:"entity"`
	Revision int64  `json:"revision"` // zero if there never was one
	// Applied says that the stored messages were classified by it.
	Applied      bool            `json:"applied"`
	Policy       json.RawMessage `json:"policy"`
	Warnings     []string        `json:"warnings"`
	Consequences []string        `json:"consequences"`
}

func PolicyStateOf(n *Entity, d *Definition) PolicyState {
	s := PolicyState{
		Entity: n.Path, Revision: d.PolicyRevision, Applied: d.Classified == d.PolicyRevision,
		Policy: d.Properties.Policy,
	}
	if s.Policy == nil {
		s.Policy = json.RawMessage("{}")
	}
	s.Warnings, s.Consequences = d.Advice(d.Classifier.Policy)
	return s
}

// Advice returns the warnings about a policy of the entity, and its consequences.
func (d *Definition) Advice(p *policy.Policy) (warnings, consequences []string) {
	lock := d.Properties.LockDuration.Std()
	warnings = []string{}
	for _, w := range p.Warnings(lock) {
		warnings = append(warnings, w.Error())
	}
	return warnings, p.Consequences(lock)
}

// Policy returns the policy of a queue or subscription.
func (c *Catalog) Policy(addr string) (PolicyState, error) {
	n, err := c.PolicyEntity(addr)
	if err != nil {
		return PolicyState{}, err
	}
	return PolicyStateOf(n, n.Definition()), nil
}

// PolicyEntity returns the entity of an address that can have a policy.
func (c *Catalog) PolicyEntity(addr string) (*Entity, error) {
	n, _, err := c.Find(addr)
	if err == nil && n.Kind == KindTopic {
		return nil, fmt.Errorf("%w: %q is a topic; its subscriptions have policies", ErrNotAllowed, n.Path)
	}
	return n, err
}

func ParsePolicy(raw []byte) (*policy.Policy, error) {
	p, err := policy.Parse(raw)
	return p, Invalid(err)
}

// setPolicy changes the policy of a copy of a definition. The revision in the policy is
// the one that the user has read; it is not stored.
func (d *Definition) setPolicy(raw []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil && fields["revision"] != nil {
		delete(fields, "revision")
		raw, _ = json.Marshal(fields) // parsed JSON can be encoded
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

// ClassName returns the name of the class of a message of the queue or subscription at
// addr; empty if it is in no class, or the entity was deleted.
func (c *Catalog) ClassName(addr string, class queue.Class) string {
	name, _ := c.ClassOf(addr, class)
	return name
}

// ClassOf returns the name of a class, as ClassName does, and how long its messages may
// wait; zero if the policy does not say.
func (c *Catalog) ClassOf(addr string, class queue.Class) (name string, wait time.Duration) {
	n, _, err := c.Find(addr)
	if err != nil || class == 0 {
		return "", 0
	}
	if classifier := n.Definition().Classifier; classifier != nil {
		if known := classifier.Policy.Class(uint8(class)); known != nil {
			return known.Name, known.Objective.Wait
		}
	}
	return "", 0
}

// MarkClassified records that the messages of a queue are classified by its policy;
// queueserver.ErrSuperseded if the policy has changed again.
func (c *Catalog) MarkClassified(ctx context.Context, n *Entity, classifier *Classifier) error {
	return c.Change(ctx, func() error {
		def := *n.Definition()
		if def.Classifier != classifier {
			return queueserver.ErrSuperseded
		}
		def.Classified = def.PolicyRevision
		meta, err := def.encode()
		if err != nil {
			return err
		}
		if err := c.store.Update(n, Stored{Meta: meta}); err != nil {
			return err
		}
		n.def.Store(&def)
		return nil
	})
}

// Why explains the class and level of the message. A policy that has changed since, and
// has not been applied yet, shows as a difference.
func (c *Classifier) Why(m *message.Message, d *queue.Delivery) string {
	text := c.Policy.Why(&filter.Envelope{Message: m, IDs: newID})
	if v := c.Classify(m); queue.Level(v.Level) != d.Level || queue.Class(v.Class) != d.Class {
		text += fmt.Sprintf("; it still has level %d of an earlier policy", d.Level)
	}
	return text
}

// ReplacePolicy replaces the policy of a queue or subscription; null removes it. The new
// one applies to the next message at once.
func (c *Catalog) ReplacePolicy(ctx context.Context, addr string, raw []byte) (*Entity, error) {
	var revision int64 // the policy itself is compiled again when it is charged
	err := c.Compiling(ctx, func() error {
		p, err := ParsePolicy(raw)
		if err == nil {
			revision = p.Revision
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var n *Entity
	err = c.Change(ctx, func() error {
		if n, err = c.PolicyEntity(addr); err != nil {
			return err
		}
		def := *n.Definition()
		if revision != 0 && revision != def.PolicyRevision {
			return fmt.Errorf("%w: the policy of %q is at revision %d, not %d", ErrInvalid, n.Path, def.PolicyRevision, revision)
		}
		def.setPolicy(raw)
		return c.redefine(n, def)
	})
	return n, err
}
