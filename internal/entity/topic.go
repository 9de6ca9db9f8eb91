// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"cmp"
	"math"

	"github.com/triagemq/triagemq/internal/limits"
)

// Topic is the definition of a topic. Its subscriptions are defined apart.
type Topic struct {
	Name                                string             `json:"name"`
	DefaultMessageTimeToLive            Duration           `json:"defaultMessageTimeToLive,omitzero"`
	MaxSizeInMegabytes                  int64              `json:"maxSizeInMegabytes,omitzero"`
	MaxMessageSizeInKilobytes           int64              `json:"maxMessageSizeInKilobytes,omitzero"`
	RequiresDuplicateDetection          bool               `json:"requiresDuplicateDetection,omitzero"`
	DuplicateDetectionHistoryTimeWindow Duration           `json:"duplicateDetectionHistoryTimeWindow,omitzero"`
	EnableBatchedOperations             *bool              `json:"enableBatchedOperations,omitempty"` // default true
	FilteringMessagesBeforePublishing   bool               `json:"filteringMessagesBeforePublishing,omitzero"`
	Status                              Status             `json:"status,omitzero"`
	SupportOrdering                     *bool              `json:"supportOrdering,omitempty"` // default true
	AutoDeleteOnIdle                    Duration           `json:"autoDeleteOnIdle,omitzero"`
	EnablePartitioning                  bool               `json:"enablePartitioning,omitzero"`
	EnableSubscriptionPartitioning      bool               `json:"enableSubscriptionPartitioning,omitzero"`
	EnableExpress                       bool               `json:"enableExpress,omitzero"`
	UserMetadata                        string             `json:"userMetadata,omitzero"`
	AuthorizationRules                  AuthorizationRules `json:"authorizationRules,omitempty"`
}

// WithDefaults returns t with every unset property set.
func (t Topic) WithDefaults() Topic {
	t.DefaultMessageTimeToLive = cmp.Or(t.DefaultMessageTimeToLive, Forever)
	t.MaxSizeInMegabytes = cmp.Or(t.MaxSizeInMegabytes, defaultMaxSizeMB)
	t.MaxMessageSizeInKilobytes = cmp.Or(t.MaxMessageSizeInKilobytes, defaultMaxMessageKB)
	t.DuplicateDetectionHistoryTimeWindow = cmp.Or(t.DuplicateDetectionHistoryTimeWindow, defaultDuplicateWindow)
	t.EnableBatchedOperations = cmp.Or(t.EnableBatchedOperations, new(true))
	t.Status = cmp.Or(t.Status, Active)
	t.SupportOrdering = cmp.Or(t.SupportOrdering, new(true))
	t.AutoDeleteOnIdle = cmp.Or(t.AutoDeleteOnIdle, Forever)
	return t
}

// Validate reports everything that is wrong with t, as [Faults].
func (t Topic) Validate() error {
	var fs Faults
	fs.name("name", t.Name, checkName)
	fs.duration("defaultMessageTimeToLive", t.DefaultMessageTimeToLive, 1, Forever)
	fs.number("maxSizeInMegabytes", t.MaxSizeInMegabytes, 1, math.MaxInt64>>20)
	fs.number("maxMessageSizeInKilobytes", t.MaxMessageSizeInKilobytes, 1, maxMessageKB)
	fs.duration("duplicateDetectionHistoryTimeWindow", t.DuplicateDetectionHistoryTimeWindow, minDuplicateWindow, maxDuplicateWindow)
	fs.status(t.Status)
	fs.duration("autoDeleteOnIdle", t.AutoDeleteOnIdle, minAutoDelete, Forever)
	fs.length("userMetadata", t.UserMetadata, limits.UserMetadata)
	fs.nested("authorizationRules", t.AuthorizationRules.faults())
	return fs.err()
}

// CheckUpdate reports which of the differences between t and next are not
// allowed, each as an [UpdateError]. Both have their defaults.
func (t Topic) CheckUpdate(next Topic) error {
	u := update{kind: "Topic"}
	u.name(t.Name, next.Name)
	fixed(&u, "RequiresDuplicateDetection", t.RequiresDuplicateDetection, next.RequiresDuplicateDetection)
	u.partitioning(t.EnablePartitioning, next.EnablePartitioning)
	return u.err()
}
