// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net/http"
	"time"
)

// Entity is a queue, topic or subscription: what it was defined as, what it is like now,
// and what of it is suspended.
type Entity[D any] struct {
	Definition D       `json:"definition"`
	Runtime    Runtime `json:"runtime"`
	Paused     Pause   `json:"paused"`
}

// Counts are the messages of an entity by state.
type Counts struct {
	Active             int64 `json:"active"` // ready, locked and retrying
	Locked             int64 `json:"locked"`
	Retrying           int64 `json:"retrying"` // have failed, and wait until a time
	Deferred           int64 `json:"deferred"`
	Scheduled          int64 `json:"scheduled"`
	DeadLetter         int64 `json:"deadLetter"`
	Transfer           int64 `json:"transfer"`
	TransferDeadLetter int64 `json:"transferDeadLetter"`
	SizeInBytes        int64 `json:"sizeInBytes"`
}

// Level is how many messages of a level are ready, and since when the oldest waits.
type Level struct {
	Level  uint8     `json:"level"`
	Ready  int64     `json:"ready"`
	Oldest time.Time `json:"oldest"`
}

// Runtime has the counts and times of an entity.
type Runtime struct {
	Counts
	Levels        []Level   `json:"levels,omitempty"`
	Receivers     int       `json:"receivers"`
	Created       time.Time `json:"createdAt"`
	Updated       time.Time `json:"updatedAt"`
	Accessed      time.Time `json:"accessedAt"`
	Subscriptions int       `json:"subscriptions,omitempty"` // of a topic
}

// Pause suspends sending or receiving. Nothing is lost.
type Pause struct {
	Sending   bool `json:"sending,omitzero"`
	Receiving bool `json:"receiving,omitzero"`
}

// Namespace is the broker as a whole.
type Namespace struct {
	Name          string    `json:"name"`
	Started       time.Time `json:"startedAt"`
	Queues        int       `json:"queues"`
	Topics        int       `json:"topics"`
	Subscriptions int       `json:"subscriptions"`
	Hubs          int       `json:"hubs"`
	Counts        Counts    `json:"counts"` // of all of them together
	// StoredMemory is the memory that is used by what clients have made durable.
	StoredMemory StoredMemory `json:"storedMemory"`
	// Warnings is what an operator has to do something about: parts of the configuration
	// that cannot be applied because of what is stored, say.
	Warnings []string `json:"warnings,omitempty"`
}

// StoredMemory is the memory that is used by what clients have made durable, in bytes.
type StoredMemory struct {
	Limit         int64 `json:"limitInBytes"`
	Messages      int64 `json:"messagesInBytes"`      // that wait, with sessions, fair keys and message ids
	MessagesLimit int64 `json:"messagesLimitInBytes"` // senders are refused beyond it
	Definitions   int64 `json:"definitionsInBytes"`
	Groups        int64 `json:"groupsInBytes"`
}

// Namespace returns the broker as a whole.
func (c *Client) Namespace(ctx context.Context) (Namespace, error) {
	return get[Namespace](ctx, c, "show the namespace", "", "/namespace")
}

// Queues returns all queues by name.
func (c *Client) Queues(ctx context.Context) ([]Entity[Queue], error) {
	return list[Entity[Queue]](ctx, c, "list queues", "", "/queues")
}

// Queue returns a queue with its counts.
func (c *Client) Queue(ctx context.Context, name string) (Entity[Queue], error) {
	return get[Entity[Queue]](ctx, c, "show queue", name, path("queues", name))
}

// CreateQueue creates a queue; [client.ErrExists] if there is one of that name.
func (c *Client) CreateQueue(ctx context.Context, q Queue) (Entity[Queue], error) {
	return put[Entity[Queue]](ctx, c, http.MethodPost, "create queue", q.Name, "/queues", q)
}

// PutQueue creates a queue or replaces its definition: what is not set has its default
// again, except the policy, which stays.
func (c *Client) PutQueue(ctx context.Context, q Queue) (Entity[Queue], error) {
	return put[Entity[Queue]](ctx, c, http.MethodPut, "put queue", q.Name, path("queues", q.Name), q)
}

// DeleteQueue deletes a queue with all its messages.
func (c *Client) DeleteQueue(ctx context.Context, name string) error {
	return c.remove(ctx, "delete queue", name, path("queues", name))
}

// Topics returns all topics by name.
func (c *Client) Topics(ctx context.Context) ([]Entity[Topic], error) {
	return list[Entity[Topic]](ctx, c, "list topics", "", "/topics")
}

// Topic returns a topic.
func (c *Client) Topic(ctx context.Context, name string) (Entity[Topic], error) {
	return get[Entity[Topic]](ctx, c, "show topic", name, path("topics", name))
}

// CreateTopic creates a topic; [client.ErrExists] if there is one of that name.
func (c *Client) CreateTopic(ctx context.Context, t Topic) (Entity[Topic], error) {
	return put[Entity[Topic]](ctx, c, http.MethodPost, "create topic", t.Name, "/topics", t)
}

// PutTopic creates a topic or replaces its definition.
func (c *Client) PutTopic(ctx context.Context, t Topic) (Entity[Topic], error) {
	return put[Entity[Topic]](ctx, c, http.MethodPut, "put topic", t.Name, path("topics", t.Name), t)
}

// DeleteTopic deletes a topic with its subscriptions and all their messages.
func (c *Client) DeleteTopic(ctx context.Context, name string) error {
	return c.remove(ctx, "delete topic", name, path("topics", name))
}

// Subscriptions returns the subscriptions of a topic by name, with their rules.
func (c *Client) Subscriptions(ctx context.Context, topic string) ([]Entity[Subscription], error) {
	return list[Entity[Subscription]](ctx, c, "list subscriptions of", topic, path("topics", topic, "subscriptions"))
}

// Subscription returns a subscription with its rules and counts.
func (c *Client) Subscription(ctx context.Context, topic, name string) (Entity[Subscription], error) {
	return get[Entity[Subscription]](ctx, c, "show subscription", topic+"/"+name, path("topics", topic, "subscriptions", name))
}

// CreateSubscription creates a subscription with its rules; without any it gets one that
// matches everything.
func (c *Client) CreateSubscription(ctx context.Context, topic string, s Subscription) (Entity[Subscription], error) {
	return put[Entity[Subscription]](ctx, c, http.MethodPost, "create subscription", topic+"/"+s.Name, path("topics", topic, "subscriptions"), s)
}

// PutSubscription creates a subscription or replaces its definition; rules that are not
// given stay, and so does the policy.
func (c *Client) PutSubscription(ctx context.Context, topic string, s Subscription) (Entity[Subscription], error) {
	return put[Entity[Subscription]](ctx, c, http.MethodPut, "put subscription", topic+"/"+s.Name, path("topics", topic, "subscriptions", s.Name), s)
}

// DeleteSubscription deletes a subscription with all its messages.
func (c *Client) DeleteSubscription(ctx context.Context, topic, name string) error {
	return c.remove(ctx, "delete subscription", topic+"/"+name, path("topics", topic, "subscriptions", name))
}

// Rules returns the rules of a subscription by name.
func (c *Client) Rules(ctx context.Context, topic, subscription string) ([]Rule, error) {
	return list[Rule](ctx, c, "list rules of", topic+"/"+subscription, path("topics", topic, "subscriptions", subscription, "rules"))
}

// PutRule adds a rule, effective for the next message, or replaces it.
func (c *Client) PutRule(ctx context.Context, topic, subscription string, r Rule) (Rule, error) {
	r.Created = time.Time{} // the broker's to set
	return put[Rule](ctx, c, http.MethodPut, "put rule "+r.Name+" of", topic+"/"+subscription,
		path("topics", topic, "subscriptions", subscription, "rules", r.Name), r)
}

// DeleteRule removes a rule.
func (c *Client) DeleteRule(ctx context.Context, topic, subscription, name string) error {
	return c.remove(ctx, "delete rule "+name+" of", topic+"/"+subscription, path("topics", topic, "subscriptions", subscription, "rules", name))
}
