// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

// Duration is a time span in a definition. Zero means the default.
type Duration time.Duration

// Forever is longer than everything.
const Forever Duration = math.MaxInt64

// String returns it as the configuration file has it: 30s, 14d, forever.
func (d Duration) String() string { return entity.Duration(d).String() }

// MarshalText returns what String does.
func (d Duration) MarshalText() ([]byte, error) { return entity.Duration(d).MarshalText() }

// UnmarshalText reads what MarshalText writes, and ISO 8601.
func (d *Duration) UnmarshalText(text []byte) error { return (*entity.Duration)(d).UnmarshalText(text) }

// Values are the parameters or properties of a filter: strings, booleans, int32, int64,
// float64, time.Time and time.Duration.
type Values map[string]any

// MarshalJSON writes values with their types.
func (v Values) MarshalJSON() ([]byte, error) {
	out := make(map[string]entity.Value, len(v))
	for name, x := range v {
		value, err := entity.NewValue(x)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Values) UnmarshalJSON(text []byte) error {
	var in map[string]entity.Value
	if err := json.Unmarshal(text, &in); err != nil || in == nil {
		return err
	}
	*v = Values{}
	for name, x := range in {
		(*v)[name] = x.Any()
	}
	return nil
}

// Right is what a key allows.
type Right string

// The rights. Manage includes the others.
const (
	Send   Right = "Send"
	Listen Right = "Listen"
	Manage Right = "Manage"
)

// Status says what an entity does for now.
type Status string

// The statuses.
const (
	Active          Status = "Active"
	Disabled        Status = "Disabled"
	SendDisabled    Status = "SendDisabled"
	ReceiveDisabled Status = "ReceiveDisabled"
)

// Key is a shared access key of one entity. Without PrimaryKey SetKey makes one.
type Key struct {
	Name         string    `json:"keyName"`
	Rights       []Right   `json:"rights"`
	PrimaryKey   string    `json:"primaryKey,omitzero"`
	SecondaryKey string    `json:"secondaryKey,omitzero"`
	Created      time.Time `json:"createdTime,omitzero"`
	Modified     time.Time `json:"modifiedTime,omitzero"`
}

// Queue is the definition of a queue. Only Name is required; zero means the default, which
// the broker fills in. docs/guide/configuration.md has the meaning of each field.
type Queue struct {
	Name                                string          `json:"name"`
	LockDuration                        Duration        `json:"lockDuration,omitzero"`
	MaxSizeInMegabytes                  int64           `json:"maxSizeInMegabytes,omitzero"`
	MaxMessageCount                     int64           `json:"maxMessageCount,omitzero"`
	MaxMessageSizeInKilobytes           int64           `json:"maxMessageSizeInKilobytes,omitzero"`
	RequiresDuplicateDetection          bool            `json:"requiresDuplicateDetection,omitzero"`
	DuplicateDetectionHistoryTimeWindow Duration        `json:"duplicateDetectionHistoryTimeWindow,omitzero"`
	RequiresSession                     bool            `json:"requiresSession,omitzero"`
	DefaultMessageTimeToLive            Duration        `json:"defaultMessageTimeToLive,omitzero"`
	DeadLetteringOnMessageExpiration    bool            `json:"deadLetteringOnMessageExpiration,omitzero"`
	MaxDeliveryCount                    int32           `json:"maxDeliveryCount,omitzero"`
	EnableBatchedOperations             *bool           `json:"enableBatchedOperations,omitempty"` // default true
	Status                              Status          `json:"status,omitzero"`
	ForwardTo                           string          `json:"forwardTo,omitzero"`
	ForwardDeadLetteredMessagesTo       string          `json:"forwardDeadLetteredMessagesTo,omitzero"`
	AutoDeleteOnIdle                    Duration        `json:"autoDeleteOnIdle,omitzero"`
	EnablePartitioning                  bool            `json:"enablePartitioning,omitzero"`
	EnableExpress                       bool            `json:"enableExpress,omitzero"`
	SupportOrdering                     *bool           `json:"supportOrdering,omitempty"` // default true
	UserMetadata                        string          `json:"userMetadata,omitzero"`
	AuthorizationRules                  []Key           `json:"authorizationRules,omitempty"`
	Policy                              json.RawMessage `json:"policy,omitempty"` // docs/guide/priorities.md
}

// Topic is the definition of a topic.
type Topic struct {
	Name                                string   `json:"name"`
	DefaultMessageTimeToLive            Duration `json:"defaultMessageTimeToLive,omitzero"`
	MaxSizeInMegabytes                  int64    `json:"maxSizeInMegabytes,omitzero"`
	MaxMessageSizeInKilobytes           int64    `json:"maxMessageSizeInKilobytes,omitzero"`
	RequiresDuplicateDetection          bool     `json:"requiresDuplicateDetection,omitzero"`
	DuplicateDetectionHistoryTimeWindow Duration `json:"duplicateDetectionHistoryTimeWindow,omitzero"`
	EnableBatchedOperations             *bool    `json:"enableBatchedOperations,omitempty"` // default true
	FilteringMessagesBeforePublishing   bool     `json:"filteringMessagesBeforePublishing,omitzero"`
	Status                              Status   `json:"status,omitzero"`
	SupportOrdering                     *bool    `json:"supportOrdering,omitempty"` // default true
	AutoDeleteOnIdle                    Duration `json:"autoDeleteOnIdle,omitzero"`
	EnablePartitioning                  bool     `json:"enablePartitioning,omitzero"`
	EnableSubscriptionPartitioning      bool     `json:"enableSubscriptionPartitioning,omitzero"`
	EnableExpress                       bool     `json:"enableExpress,omitzero"`
	UserMetadata                        string   `json:"userMetadata,omitzero"`
	AuthorizationRules                  []Key    `json:"authorizationRules,omitempty"`
}

// Subscription is the definition of a subscription of a topic.
type Subscription struct {
	Name                                      string          `json:"name"`
	LockDuration                              Duration        `json:"lockDuration,omitzero"`
	RequiresSession                           bool            `json:"requiresSession,omitzero"`
	DefaultMessageTimeToLive                  Duration        `json:"defaultMessageTimeToLive,omitzero"`
	DeadLetteringOnMessageExpiration          bool            `json:"deadLetteringOnMessageExpiration,omitzero"`
	DeadLetteringOnFilterEvaluationExceptions *bool           `json:"deadLetteringOnFilterEvaluationExceptions,omitempty"` // default true
	MaxDeliveryCount                          int32           `json:"maxDeliveryCount,omitzero"`
	MaxMessageCount                           int64           `json:"maxMessageCount,omitzero"`
	EnableBatchedOperations                   *bool           `json:"enableBatchedOperations,omitempty"` // default true
	Status                                    Status          `json:"status,omitzero"`
	ForwardTo                                 string          `json:"forwardTo,omitzero"`
	ForwardDeadLetteredMessagesTo             string          `json:"forwardDeadLetteredMessagesTo,omitzero"`
	AutoDeleteOnIdle                          Duration        `json:"autoDeleteOnIdle,omitzero"`
	UserMetadata                              string          `json:"userMetadata,omitzero"`
	Policy                                    json.RawMessage `json:"policy,omitempty"` // docs/guide/priorities.md

	// DefaultRule replaces the rule that matches everything; only at creation, and
	// not together with Rules.
	DefaultRule *Rule `json:"defaultRule,omitempty"`
	// Rules are all the rules there shall be; nil leaves them as they are.
	Rules []Rule `json:"rules,omitzero"`
}

// Hub is the definition of an event hub. Only Name is required; zero means the default,
// which the broker fills in. docs/guide/hubs.md has the meaning of each field.
type Hub struct {
	Name string `json:"name"`
	// PartitionCount may grow later, and never shrink. Zero leaves it as it is.
	PartitionCount              int      `json:"partitionCount,omitzero"`
	MessageRetention            Duration `json:"messageRetention,omitzero"`
	MaxPartitionSizeInMegabytes int64    `json:"maxPartitionSizeInMegabytes,omitzero"` // zero is no limit
	MaxMessageSizeInKilobytes   int64    `json:"maxMessageSizeInKilobytes,omitzero"`
	Status                      Status   `json:"status,omitzero"`
	UserMetadata                string   `json:"userMetadata,omitzero"`
	AuthorizationRules          []Key    `json:"authorizationRules,omitempty"`
	// ConsumerGroups are all the groups there shall be, besides $Default, which is always
	// there; nil leaves them as they are.
	ConsumerGroups []ConsumerGroup `json:"consumerGroups,omitzero"`
}

// ConsumerGroup is a name under which an event hub is read.
type ConsumerGroup struct {
	Name         string    `json:"name"`
	UserMetadata string    `json:"userMetadata,omitzero"`
	Created      time.Time `json:"createdAt,omitzero"` // set by the broker
	Updated      time.Time `json:"updatedAt,omitzero"` // set by the broker
}

// Rule chooses messages for a subscription and may change them.
type Rule struct {
	Name    string    `json:"name"`
	Filter  Filter    `json:"filter,omitzero"` // the zero value matches everything
	Action  Action    `json:"action,omitzero"`
	Created time.Time `json:"createdAt,omitzero"` // set by the broker
}

// Filter is a condition: SQL, or Correlation. Kind is sql, correlation, true or false, and
// may be left out.
type Filter struct {
	Kind        string       `json:"kind,omitzero"`
	SQL         string       `json:"sql,omitzero"`
	Parameters  Values       `json:"parameters,omitempty"` // of the SQL, without the @
	Correlation *Correlation `json:"correlation,omitempty"`
}

// Correlation matches messages whose fields are equal to all that are set.
type Correlation struct {
	CorrelationID    string `json:"correlationId,omitzero"`
	MessageID        string `json:"messageId,omitzero"`
	To               string `json:"to,omitzero"`
	ReplyTo          string `json:"replyTo,omitzero"`
	Label            string `json:"label,omitzero"`
	SessionID        string `json:"sessionId,omitzero"`
	ReplyToSessionID string `json:"replyToSessionId,omitzero"`
	ContentType      string `json:"contentType,omitzero"`
	Properties       Values `json:"properties,omitempty"`
}

// Action changes a message that a rule has matched.
type Action struct {
	SQL        string `json:"sql,omitzero"`
	Parameters Values `json:"parameters,omitempty"`
}
