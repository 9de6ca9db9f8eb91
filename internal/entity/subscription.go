// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// Subscription is the definition of a topic's subscription. It is read like a
// queue.
type Subscription struct {
	Name                                      string          `json:"name"`
	LockDuration                              Duration        `json:"lockDuration,omitzero"`
	RequiresSession                           bool            `json:"requiresSession,omitzero"`
	DefaultMessageTimeToLive                  Duration        `json:"defaultMessageTimeToLive,omitzero"`
	DeadLetteringOnMessageExpiration          bool            `json:"deadLetteringOnMessageExpiration,omitzero"`
	DeadLetteringOnFilterEvaluationExceptions *bool           `json:"deadLetteringOnFilterEvaluationExceptions,omitempty"` // default true
	MaxDeliveryCount                          Deliveries      `json:"maxDeliveryCount,omitzero"`
	MaxMessageCount                           int64           `json:"maxMessageCount,omitzero"`          // ours; zero is no limit
	EnableBatchedOperations                   *bool           `json:"enableBatchedOperations,omitempty"` // default true
	Status                                    Status          `json:"status,omitzero"`
	ForwardTo                                 string          `json:"forwardTo,omitzero"` // a name or a URL; stored unchanged
	ForwardDeadLetteredMessagesTo             string          `json:"forwardDeadLetteredMessagesTo,omitzero"`
	AutoDeleteOnIdle                          Duration        `json:"autoDeleteOnIdle,omitzero"`
	UserMetadata                              string          `json:"userMetadata,omitzero"`
	Policy                                    json.RawMessage `json:"policy,omitempty"` // ours; package policy reads it

	// DefaultRule replaces the rule that matches everything; only at creation, and
	// not together with Rules.
	DefaultRule *Rule `json:"defaultRule,omitempty"`
	// Rules are all the rules there shall be. Nil leaves them as they are, or
	// as DefaultRule says at creation.
	Rules []Rule `json:"rules,omitzero"`
}

// WithDefaults returns s with every unset property set, those of its rules too.
func (s Subscription) WithDefaults() Subscription {
	s.LockDuration = cmp.Or(s.LockDuration, defaultLockDuration)
	s.DefaultMessageTimeToLive = cmp.Or(s.DefaultMessageTimeToLive, Forever)
	s.DeadLetteringOnFilterEvaluationExceptions = cmp.Or(s.DeadLetteringOnFilterEvaluationExceptions, new(true))
	s.MaxDeliveryCount = cmp.Or(s.MaxDeliveryCount, defaultMaxDelivery)
	s.EnableBatchedOperations = cmp.Or(s.EnableBatchedOperations, new(true))
	s.Status = cmp.Or(s.Status, Active)
	s.AutoDeleteOnIdle = cmp.Or(s.AutoDeleteOnIdle, Forever)
	if s.DefaultRule != nil {
		rule := *s.DefaultRule
		rule.Name = cmp.Or(rule.Name, DefaultRule)
		s.DefaultRule = new(rule.WithDefaults())
	}
	if s.Rules != nil {
		rules := make([]Rule, len(s.Rules))
		for i, r := range s.Rules {
			rules[i] = r.WithDefaults()
		}
		s.Rules = rules
	}
	return s
}

// InitialRules returns the rules that s has when it is created.
func (s Subscription) InitialRules() []Rule {
	switch {
	case s.Rules != nil:
		return s.Rules
	case s.DefaultRule != nil:
		return []Rule{*s.DefaultRule}
	}
	return []Rule{Rule{Name: DefaultRule}.WithDefaults()}
}

// AsQueue returns the queue that s is to its readers. What a subscription has no
// property for, it takes from the topic; that the topic has already done its
// duplicate detection is the caller's to know.
func (s Subscription) AsQueue(t Topic) Queue {
	return Queue{
		Name:                             SubscriptionPath(t.Name, s.Name),
		LockDuration:                     s.LockDuration,
		MaxSizeInMegabytes:               t.MaxSizeInMegabytes,
		MaxMessageCount:                  s.MaxMessageCount,
		MaxMessageSizeInKilobytes:        t.MaxMessageSizeInKilobytes,
		RequiresSession:                  s.RequiresSession,
		DefaultMessageTimeToLive:         min(cmp.Or(s.DefaultMessageTimeToLive, Forever), cmp.Or(t.DefaultMessageTimeToLive, Forever)),
		DeadLetteringOnMessageExpiration: s.DeadLetteringOnMessageExpiration,
		MaxDeliveryCount:                 s.MaxDeliveryCount,
		EnableBatchedOperations:          s.EnableBatchedOperations,
		Status:                           s.Status,
		ForwardTo:                        s.ForwardTo,
		ForwardDeadLetteredMessagesTo:    s.ForwardDeadLetteredMessagesTo,
		AutoDeleteOnIdle:                 s.AutoDeleteOnIdle,
		EnablePartitioning:               t.EnablePartitioning,
		EnableExpress:                    t.EnableExpress,
		SupportOrdering:                  t.SupportOrdering,
		UserMetadata:                     s.UserMetadata,
		Policy:                           s.Policy,
	}.WithDefaults()
}

// Validate reports everything that is wrong with s, as [Faults].
func (s Subscription) Validate() error {
	var fs Faults
	fs.name("name", s.Name, checkSubscriptionName)
	q := s.AsQueue(Topic{}.WithDefaults())
	q.LockDuration = s.LockDuration // AsQueue supplies defaults, which here would hide a fault
	q.MaxDeliveryCount, q.Status, q.AutoDeleteOnIdle = s.MaxDeliveryCount, s.Status, s.AutoDeleteOnIdle
	q.DefaultMessageTimeToLive = s.DefaultMessageTimeToLive
	q.checkProperties(&fs)
	if s.DefaultRule != nil {
		fs.nested("defaultRule", s.DefaultRule.faults())
		if s.Rules != nil {
			fs.addf("defaultRule", "not possible together with rules")
		}
	}
	names := map[string]int{}
	for i, r := range s.Rules {
		if fs.full() {
			break
		}
		place := fmt.Sprintf("rules[%d]", i)
		fs.nested(place, r.faults())
		if first, twice := names[Key(r.Name)]; twice {
			fs.addf(place+".name", "%q is also the name of rules[%d]", r.Name, first)
			continue
		}
		names[Key(r.Name)] = i
	}
	return fs.err()
}

// CheckUpdate reports which of the differences between s and next are not
// allowed, each as an [UpdateError]. Both have their defaults. Rules are not
// compared: they are managed separately.
func (s Subscription) CheckUpdate(next Subscription) error {
	u := update{kind: "Subscription"}
	u.name(s.Name, next.Name)
	fixed(&u, "RequiresSession", s.RequiresSession, next.RequiresSession)
	return u.err()
}
