// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

// What Service Bus allows and assumes.
const (
	minLockDuration = Duration(5 * time.Second)
	maxLockDuration = Duration(5 * time.Minute)
	// The service requires 20 s; files of its emulator use 5 s.
	minDuplicateWindow = Duration(5 * time.Second)
	maxDuplicateWindow = 7 * day
	minAutoDelete      = Duration(5 * time.Minute)
	maxMessageKB       = 100 << 10

	defaultLockDuration    = Duration(time.Minute)
	defaultDuplicateWindow = Duration(10 * time.Minute)
	defaultMaxDelivery     = 10
	defaultMaxSizeMB       = 1024
	defaultMaxMessageKB    = 256
)

// Queue is the definition of a queue.
type Queue struct {
	Name                                string             `json:"name"`
	LockDuration                        Duration           `json:"lockDuration,omitzero"`
	MaxSizeInMegabytes                  int64              `json:"maxSizeInMegabytes,omitzero"`
	MaxMessageCount                     int64              `json:"maxMessageCount,omitzero"` // ours; zero is no limit
	MaxMessageSizeInKilobytes           int64              `json:"maxMessageSizeInKilobytes,omitzero"`
	RequiresDuplicateDetection          bool               `json:"requiresDuplicateDetection,omitzero"`
	DuplicateDetectionHistoryTimeWindow Duration           `json:"duplicateDetectionHistoryTimeWindow,omitzero"`
	RequiresSession                     bool               `json:"requiresSession,omitzero"`
	DefaultMessageTimeToLive            Duration           `json:"defaultMessageTimeToLive,omitzero"`
	DeadLetteringOnMessageExpiration    bool               `json:"deadLetteringOnMessageExpiration,omitzero"`
	MaxDeliveryCount                    Deliveries         `json:"maxDeliveryCount,omitzero"`
	EnableBatchedOperations             *bool              `json:"enableBatchedOperations,omitempty"` // default true
	Status                              Status             `json:"status,omitzero"`
	ForwardTo                           string             `json:"forwardTo,omitzero"` // a name or a URL; stored unchanged
	ForwardDeadLetteredMessagesTo       string             `json:"forwardDeadLetteredMessagesTo,omitzero"`
	AutoDeleteOnIdle                    Duration           `json:"autoDeleteOnIdle,omitzero"`
	EnablePartitioning                  bool               `json:"enablePartitioning,omitzero"`
	EnableExpress                       bool               `json:"enableExpress,omitzero"`
	SupportOrdering                     *bool              `json:"supportOrdering,omitempty"` // default true
	UserMetadata                        string             `json:"userMetadata,omitzero"`
	AuthorizationRules                  AuthorizationRules `json:"authorizationRules,omitempty"`
	Policy                              json.RawMessage    `json:"policy,omitempty"` // ours; package policy reads it
}

// WithDefaults returns q with every unset property set.
func (q Queue) WithDefaults() Queue {
	q.LockDuration = cmp.Or(q.LockDuration, defaultLockDuration)
	q.MaxSizeInMegabytes = cmp.Or(q.MaxSizeInMegabytes, defaultMaxSizeMB)
	q.MaxMessageSizeInKilobytes = cmp.Or(q.MaxMessageSizeInKilobytes, defaultMaxMessageKB)
	q.DuplicateDetectionHistoryTimeWindow = cmp.Or(q.DuplicateDetectionHistoryTimeWindow, defaultDuplicateWindow)
	q.DefaultMessageTimeToLive = cmp.Or(q.DefaultMessageTimeToLive, Forever)
	q.MaxDeliveryCount = cmp.Or(q.MaxDeliveryCount, defaultMaxDelivery)
	q.EnableBatchedOperations = cmp.Or(q.EnableBatchedOperations, new(true))
	q.Status = cmp.Or(q.Status, Active)
	q.AutoDeleteOnIdle = cmp.Or(q.AutoDeleteOnIdle, Forever)
	q.SupportOrdering = cmp.Or(q.SupportOrdering, new(true))
	return q
}

// Validate reports everything that is wrong with q, as [Faults].
func (q Queue) Validate() error {
	var fs Faults
	fs.name("name", q.Name, checkName)
	q.checkProperties(&fs)
	return fs.err()
}

// checkProperties is Validate without the name.
func (q Queue) checkProperties(fs *Faults) {
	fs.duration("lockDuration", q.LockDuration, minLockDuration, maxLockDuration)
	fs.number("maxSizeInMegabytes", q.MaxSizeInMegabytes, 1, math.MaxInt64>>20)
	fs.number("maxMessageCount", q.MaxMessageCount, 0, math.MaxInt64)
	fs.number("maxMessageSizeInKilobytes", q.MaxMessageSizeInKilobytes, 1, maxMessageKB)
	fs.duration("duplicateDetectionHistoryTimeWindow", q.DuplicateDetectionHistoryTimeWindow, minDuplicateWindow, maxDuplicateWindow)
	fs.duration("defaultMessageTimeToLive", q.DefaultMessageTimeToLive, 1, Forever)
	fs.number("maxDeliveryCount", int64(q.MaxDeliveryCount), 1, math.MaxInt32)
	fs.status(q.Status)
	fs.forward("forwardTo", q.ForwardTo, q.Name)
	fs.forward("forwardDeadLetteredMessagesTo", q.ForwardDeadLetteredMessagesTo, q.Name)
	if q.ForwardTo != "" && q.RequiresSession {
		fs.addf("forwardTo", "not possible together with requiresSession")
	}
	fs.duration("autoDeleteOnIdle", q.AutoDeleteOnIdle, minAutoDelete, Forever)
	fs.length("userMetadata", q.UserMetadata, limits.UserMetadata)
	fs.nested("authorizationRules", q.AuthorizationRules.faults())
	fs.policy(q.Policy)
}

// CheckUpdate reports which of the differences between q and next are not
// allowed, each as an [UpdateError]. Both have their defaults.
func (q Queue) CheckUpdate(next Queue) error {
	u := update{kind: "Queue"}
	u.name(q.Name, next.Name)
	fixed(&u, "RequiresSession", q.RequiresSession, next.RequiresSession)
	fixed(&u, "RequiresDuplicateDetection", q.RequiresDuplicateDetection, next.RequiresDuplicateDetection)
	u.partitioning(q.EnablePartitioning, next.EnablePartitioning)
	return u.err()
}

func (fs *Faults) status(s Status) {
	if _, err := ParseStatus(string(s)); err != nil {
		fs.addf("status", "%s", Reason(err))
	}
}

// forward checks where messages go from the queue or subscription called self.
func (fs *Faults) forward(field, target, self string) {
	if target == "" {
		return
	}
	p, err := ParsePath(target)
	switch {
	case err != nil:
		fs.addf(field, "%s", Reason(err))
	case p != Path{Entity: p.Entity}:
		fs.addf(field, "%q is neither a queue nor a topic", target)
	case Key(p.Entity) == Key(self):
		fs.addf(field, "%q would forward to itself", target)
	}
}

// policy checks only the form: the meaning of a policy is checked by package
// policy.
func (fs *Faults) policy(raw json.RawMessage) {
	if len(raw) > 0 && !json.Valid(raw) {
		fs.addf("policy", "not JSON")
	}
}
