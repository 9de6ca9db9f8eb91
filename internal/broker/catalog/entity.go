// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Kind is what an entity is.
type Kind string

// The kinds. They are on disk and never change.
const (
	KindQueue        Kind = "queue"
	KindTopic        Kind = "topic"
	KindSubscription Kind = "subscription"
	KindHub          Kind = "hub"
)

// Pause suspends sending or receiving. No message is lost; consumers stay attached and
// get no messages.
type Pause struct {
	Sending   bool `json:"sending,omitzero"`
	Receiving bool `json:"receiving,omitzero"`
}

// Definition has everything of an entity except its messages. It is immutable: a change
// creates a new one. The JSON is on disk.
type Definition struct {
	Kind         Kind                 `json:"kind"`
	Queue        *entity.Queue        `json:"queue,omitempty"`
	Topic        *entity.Topic        `json:"topic,omitempty"`
	Subscription *entity.Subscription `json:"subscription,omitempty"`
	Hub          *entity.Hub          `json:"hub,omitempty"`
	Log          string               `json:"log,omitempty"` // of a hub: the name of the log with its events
	Paused       Pause                `json:"paused,omitzero"`
	Created      time.Time            `json:"created"`
	Updated      time.Time            `json:"updated"`

	// PolicyRevision counts the changes of the policy; zero is that there never was one.
	// Classified is the revision by which the stored messages were classified.
	PolicyRevision int64 `json:"policyRevision,omitzero"`
	Classified     int64 `json:"classified,omitzero"`

	// Properties are those of the queue or subscription as a queue; of a topic, those of
	// the queue for its scheduled messages; of a hub, those that it shares with queues. They
	// are derived, not stored.
	Properties entity.Queue `json:"-"`
	// Classifier is the compiled policy. It is replaced only with the policy.
	Classifier *Classifier    `json:"-"`
	rules      []compiledRule // of a subscription
}

// Entity is a queue, topic, subscription or event hub. Only its definition changes.
type Entity struct {
	Kind  Kind
	Path  string             // as its creator spelled it
	key   string             // entity.Key of Path; set when it is added
	Shard *queueserver.Shard // that has its messages; of a hub, its definition only
	ID    queueserver.ID
	Topic *Entity // of a subscription

	def      atomic.Pointer[Definition]
	routes   atomic.Pointer[routes] // of a topic
	subs     []*Entity              // of a topic, by path; guarded by Catalog.mu
	accessed atomic.Int64           // last use, in Unix milliseconds; zero is never
	effort   effort                 // of the rules of a topic, and of the policies behind them
	charged  int64                  // for the memory of its definition; guarded by Catalog.admin
}

// Definition returns the definition as it is now.
func (n *Entity) Definition() *Definition { return n.def.Load() }

// forgetRules gives up the rules and the policy of an entity that was deleted: nobody is charged for
// them any more, and somebody may have the entity for long, such as a sender whose message is
// coming slowly.
func (n *Entity) forgetRules() {
	def := *n.Definition()
	if def.Queue != nil {
		def.Queue = new(*def.Queue)
		def.Queue.Policy = nil
	}
	if def.Subscription != nil {
		def.Subscription = new(*def.Subscription)
		def.Subscription.Policy, def.Subscription.Rules = nil, nil
	}
	def.Properties.Policy, def.rules = nil, nil
	def.Classifier = NewClassifier(new(policy.Policy))
	n.def.Store(&def)
	if n.Kind == KindTopic {
		n.routes.Store(newRoutes(nil))
	}
}

// QueueID names one of the queues of the entity.
func (n *Entity) QueueID(part queueserver.SubQueue) queueserver.QueueID {
	return queueserver.QueueID{Entity: n.ID, SubQueue: part}
}

// Touch marks the entity as used.
func (n *Entity) Touch(now time.Time) { n.accessed.Store(now.UnixMilli()) }

// Accessed returns when the entity was last used, zero if it was not since the start.
func (n *Entity) Accessed() time.Time {
	at := n.accessed.Load()
	if at == 0 {
		return time.Time{}
	}
	return time.UnixMilli(at).UTC()
}

// derive sets the derived fields of a definition, some of them from the one before it, if
// there was one. The error is that of parse for the policy: limits apply to a new policy
// and not to a stored one. Rules that would take more than available bytes are not all compiled, which
// is a shortError.
func (d *Definition) derive(topic, before *Definition, parse func([]byte) (*policy.Policy, error), available int64) error {
	switch d.Kind {
	case KindQueue:
		d.Properties = *d.Queue
	case KindSubscription:
		d.Properties = d.Subscription.AsQueue(*topic.Topic)
		if err := d.deriveRules(before, available); err != nil {
			return err
		}
	case KindTopic:
		t := d.Topic
		d.Properties = entity.Queue{
			Name:                                t.Name,
			MaxSizeInMegabytes:                  t.MaxSizeInMegabytes,
			MaxMessageSizeInKilobytes:           t.MaxMessageSizeInKilobytes,
			DefaultMessageTimeToLive:            t.DefaultMessageTimeToLive,
			RequiresDuplicateDetection:          t.RequiresDuplicateDetection,
			DuplicateDetectionHistoryTimeWindow: t.DuplicateDetectionHistoryTimeWindow,
			Status:                              t.Status,
			AutoDeleteOnIdle:                    t.AutoDeleteOnIdle,
		}.WithDefaults()
	case KindHub:
		h := d.Hub
		d.Properties = entity.Queue{Name: h.Name, MaxMessageSizeInKilobytes: h.MaxMessageSizeInKilobytes, Status: h.Status}.WithDefaults()
	}
	return d.derivePolicy(before, parse)
}

// isLarge reports whether the definition has much that may have to be compiled.
func (d *Definition) isLarge() bool {
	const policyBytes, rules = 16 << 10, 64
	switch {
	case d.Queue != nil:
		return len(d.Queue.Policy) > policyBytes
	case d.Subscription != nil:
		return len(d.Subscription.Policy) > policyBytes || len(d.Subscription.Rules) > rules
	}
	return false
}

// configs returns the settings of the queues of the entity.
func (d *Definition) configs() map[queueserver.SubQueue]queue.Config {
	q := d.Properties
	lock := q.LockDuration.Std()
	cfg := queue.Config{
		LockFor:           lock,
		MaxFailures:       uint32(q.MaxDeliveryCount),
		DeadLetterExpired: q.DeadLetteringOnMessageExpiration,
		MaxBytes:          q.MaxSizeInMegabytes << 20,
		MaxCount:          q.MaxMessageCount,
		SendPaused:        d.Paused.Sending || !q.Status.CanSend(),
		ReceivePaused:     d.Paused.Receiving || !q.Status.CanReceive(),
		Sessions:          q.RequiresSession,
		Order:             d.Classifier.Policy.Order(),
	}
	if d.Kind == KindSubscription {
		cfg.SendPaused = false // its topic decides what is published
	}
	if q.DefaultMessageTimeToLive < entity.Forever {
		cfg.TTL = q.DefaultMessageTimeToLive.Std()
	}
	if q.RequiresDuplicateDetection {
		cfg.DuplicateWindow = q.DuplicateDetectionHistoryTimeWindow.Std()
	}
	dead := queue.Config{LockFor: lock, DeadLetterQueue: true}
	return map[queueserver.SubQueue]queue.Config{
		queueserver.Main:               cfg,
		queueserver.DeadLetter:         dead,
		queueserver.TransferDeadLetter: dead,
	}
}

func (d *Definition) encode() ([]byte, error) { return json.Marshal(d) }

// record returns a changed definition as it is stored. It is read again: what the next start
// could not read must never be stored.
func (d *Definition) record() ([]byte, error) {
	meta, err := d.encode()
	if err != nil {
		return nil, err
	}
	if _, err := decodeDefinition(meta); err != nil {
		return nil, Invalid(fmt.Errorf("it could not be read again: %w", err))
	}
	return meta, nil
}

func decodeDefinition(b []byte) (*Definition, error) {
	var d Definition
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	ok := d.Kind == KindQueue && d.Queue != nil ||
		d.Kind == KindTopic && d.Topic != nil ||
		d.Kind == KindSubscription && d.Subscription != nil ||
		d.Kind == KindHub && d.Hub != nil && d.Log != ""
	if !ok {
		return nil, fmt.Errorf("%w: a %q without its properties", ErrInvalid, d.Kind)
	}
	return &d, nil
}
