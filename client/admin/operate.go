// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/entity"
)

// place is an entity by its address, as package client takes it.
type place struct {
	entity string
	path   string   // of a queue or subscription
	others []string // its paths if it is a topic or an event hub
	part   entity.SubQueue
}

// find reads an address: of a queue, a topic, a subscription, or dead letters.
func find(address string) (place, error) {
	p, err := entity.ParsePath(address)
	if err != nil {
		return place{}, fmt.Errorf("%w: %w", client.ErrInvalid, err)
	}
	at := place{entity: address, path: path("queues", p.Entity), others: []string{path("topics", p.Entity), path("hubs", p.Entity)}, part: p.SubQueue}
	if p.Management || p.OfHub() {
		return place{}, fmt.Errorf("%w: %q has no messages", client.ErrInvalid, address)
	}
	if p.Subscription != "" {
		at.path, at.others = path("topics", p.Entity, "subscriptions", p.Subscription), nil
	}
	return at, nil
}

// findWhole is find for what is done to an entity as a whole: its dead letters are no
// name for it.
func findWhole(address string) (place, error) {
	at, err := find(address)
	if err == nil && at.part != entity.MainQueue {
		return place{}, fmt.Errorf("%w: %q is a part of an entity", client.ErrInvalid, address)
	}
	return at, err
}

// messages is where the messages of a place are.
func (p place) messages() (path string, query url.Values) {
	switch p.part {
	case entity.DeadLetter:
		return p.path + "/deadletters", url.Values{}
	case entity.TransferDeadLetter:
		return p.path + "/deadletters", url.Values{"transfer": {"true"}}
	}
	return p.path + "/messages", url.Values{}
}

// either does something to a queue or subscription or, if it is none, to a topic or an
// event hub.
func (p place) either(do func(path string) error) error {
	err := do(p.path)
	for _, path := range p.others {
		if !errors.Is(err, client.ErrNotFound) {
			break
		}
		if other := do(path); !errors.Is(other, client.ErrNotFound) {
			err = other
		}
	}
	return err
}

// Pause suspends sending or receiving on an entity, or lets both go on with the zero
// value. The address is as package client takes it; see [client.Subscription].
func (c *Client) Pause(ctx context.Context, address string, p Pause) error {
	at, err := findWhole(address)
	if err != nil {
		return err
	}
	return at.either(func(path string) error {
		return c.call(ctx, operation{text: "pause", entity: address, method: http.MethodPut, path: path + "/paused", body: p}, nil)
	})
}

// Keys returns the keys of a queue, topic or event hub. Those of the whole broker are not among
// them: they are in its data directory.
func (c *Client) Keys(ctx context.Context, address string) ([]Key, error) {
	var found struct {
		Definition struct {
			Keys []Key `json:"authorizationRules"`
		} `json:"definition"`
	}
	at, err := findWhole(address)
	if err != nil {
		return nil, err
	}
	err = at.either(func(path string) error {
		return c.call(ctx, operation{text: "list keys of", entity: address, method: http.MethodGet, path: path}, &found)
	})
	return found.Definition.Keys, err
}

// SetKey adds a key to a queue, topic or event hub, or replaces the one of that name. It returns it
// with what the broker and SetKey have filled in.
func (c *Client) SetKey(ctx context.Context, address string, k Key) (Key, error) {
	if k.PrimaryKey == "" {
		secret := make([]byte, 32)
		_, _ = rand.Read(secret) // it does not fail
		k.PrimaryKey = base64.StdEncoding.EncodeToString(secret)
	}
	k.Created, k.Modified = time.Time{}, time.Time{}
	keys, err := c.changeKeys(ctx, "set key "+k.Name+" of", address, func(keys []Key) []Key {
		return append(slices.DeleteFunc(keys, func(o Key) bool { return o.Name == k.Name }), k)
	})
	if i := slices.IndexFunc(keys, func(o Key) bool { return o.Name == k.Name }); i >= 0 {
		return keys[i], err
	}
	return Key{}, err
}

// DeleteKey removes a key. Clients that use it are cut off.
func (c *Client) DeleteKey(ctx context.Context, address, name string) error {
	_, err := c.changeKeys(ctx, "delete key "+name+" of", address, func(keys []Key) []Key {
		return slices.DeleteFunc(keys, func(o Key) bool { return o.Name == name })
	})
	return err
}

func (c *Client) changeKeys(ctx context.Context, text, address string, change func([]Key) []Key) ([]Key, error) {
	keys, err := c.Keys(ctx, address)
	if err != nil {
		return nil, err
	}
	body := map[string][]Key{"authorizationRules": append([]Key{}, change(keys)...)}
	at, err := findWhole(address)
	if err == nil {
		err = at.either(func(path string) error {
			return c.call(ctx, operation{text: text, entity: address, method: http.MethodPatch, path: path, body: body}, nil)
		})
	}
	if err != nil {
		return nil, err
	}
	return c.Keys(ctx, address)
}

// PolicyState is the policy of a queue or subscription and what follows from it.
type PolicyState struct {
	Entity       string          `json:"entity"`
	Revision     int64           `json:"revision"` // zero if there never was one
	Applied      bool            `json:"applied"`  // what waits was classified by it
	Policy       json.RawMessage `json:"policy"`
	Warnings     []string        `json:"warnings"`
	Consequences []string        `json:"consequences"`
}

// Policy returns the policy of a queue or subscription.
func (c *Client) Policy(ctx context.Context, address string) (PolicyState, error) {
	return get[PolicyState](ctx, c, "show policy of", address, path("policies", address))
}

// SetPolicy changes the policy, given as JSON. What waits is classified anew, and keeps
// its age. A nil policy takes it away.
func (c *Client) SetPolicy(ctx context.Context, address string, policy json.RawMessage) (PolicyState, error) {
	if policy == nil {
		return put[PolicyState](ctx, c, http.MethodDelete, "delete policy of", address, path("policies", address), nil)
	}
	return put[PolicyState](ctx, c, http.MethodPut, "set policy of", address, path("policies", address), policy)
}

// DryRun is what a policy would do.
type DryRun struct {
	Entity   string `json:"entity"`
	Examined int64  `json:"examined"` // messages in all states
	Changed  int64  `json:"changed"`  // of those, whose class, level or key would change
	Unread   int64  `json:"unread,omitzero"`
	Shifts   []struct {
		From  ClassLevel `json:"from"`
		To    ClassLevel `json:"to"`
		Count int64      `json:"count"`
	} `json:"shifts"`
	Changes      []string `json:"changes"` // of the policy itself
	Warnings     []string `json:"warnings"`
	Consequences []string `json:"consequences"`
}

// ClassLevel is a class and a level that a message has.
type ClassLevel struct {
	Class string `json:"class"` // empty is none
	Level uint8  `json:"level"`
}

// TryPolicy returns what a policy would make of the messages that wait now. It changes
// nothing.
func (c *Client) TryPolicy(ctx context.Context, address string, policy json.RawMessage) (DryRun, error) {
	return put[DryRun](ctx, c, http.MethodPost, "try policy of", address, path("policies", address, "dry-run"), policy)
}

// Demand is how many workers the objectives of a queue or subscription need now.
type Demand struct {
	Workers int     `json:"workers"`
	Steady  float64 `json:"steady"`  // workers busy with arrivals
	Spare   float64 `json:"spare"`   // more of them for headroom
	Backlog float64 `json:"backlog"` // more of them to work off what waits in time
	Why     string  `json:"why"`
}

// Demand returns how many workers are needed now.
func (c *Client) Demand(ctx context.Context, address string) (Demand, error) {
	return get[Demand](ctx, c, "demand of", address, path("demand", address))
}

// Explanation is why a message is where it is, and when to expect its delivery.
type Explanation struct {
	Entity     string       `json:"entity"`
	SeqNo      client.SeqNo `json:"sequenceNumber"`
	State      string       `json:"state"`
	Class      string       `json:"class"` // empty is none
	Why        string       `json:"why"`   // explains class and level
	Level      uint8        `json:"level"`
	Rank       int          `json:"rank"` // effective level now
	Discipline string       `json:"discipline"`
	LevelOrder string       `json:"levelOrder"`
	Saturated  bool         `json:"saturated"`
	// Due is when the message must start to meet the objective of its level, under the
	// discipline deadline. LateLevel is the lowest level, from its own up, that has late
	// messages: they go after higher levels and before lower ones.
	Due          *time.Time `json:"due,omitempty"`
	LateLevel    *int       `json:"lateLevel,omitempty"`
	Enqueued     time.Time  `json:"enqueuedAt"`
	Waited       float64    `json:"waited"` // seconds
	Failures     uint32     `json:"failures"`
	Ahead        int        `json:"ahead"` // messages that are delivered before it
	BlockedBy    string     `json:"blockedBy,omitempty"`
	BlockedUntil *time.Time `json:"blockedUntil,omitempty"`
	Consumers    int        `json:"consumers"`
	Start        *float64   `json:"start"` // estimate in seconds from now; nil is none
	Calculation  string     `json:"calculation"`
	Text         string     `json:"text"` // all of it in words
}

// Explain says why a message is where it is. It is for people: it looks at every message
// that waits.
func (c *Client) Explain(ctx context.Context, address string, n client.SeqNo) (Explanation, error) {
	at, err := findWhole(address)
	if err != nil {
		return Explanation{}, err
	}
	return get[Explanation](ctx, c, fmt.Sprintf("explain message %d of", n), address,
		fmt.Sprintf("%s/messages/%d/explain", at.path, n))
}

// Purge says which messages to remove; the zero value is all of them. Those that are
// locked stay.
type Purge struct {
	Before time.Time // only those that were enqueued before
	Filter string    // only those for which the SQL condition of a rule is true
}

// Purge removes messages of a queue or subscription, or of its dead letters, and returns
// how many they were.
func (c *Client) Purge(ctx context.Context, address string, p Purge) (int, error) {
	at, err := find(address)
	if err != nil {
		return 0, err
	}
	path, query := at.messages()
	if !p.Before.IsZero() {
		query.Set("before", p.Before.UTC().Format(time.RFC3339Nano))
	}
	if p.Filter != "" {
		query.Set("filter", p.Filter)
	}
	for removed := 0; ; {
		var page struct {
			Removed int          `json:"removed"`
			Next    client.SeqNo `json:"next"`
		}
		op := operation{text: "purge", entity: address, method: http.MethodDelete, path: path, query: query}
		if err := c.call(ctx, op, &page); err != nil {
			return removed, err
		}
		if removed += page.Removed; page.Next == 0 {
			return removed, nil
		}
		query.Set("from", strconv.FormatInt(int64(page.Next), 10))
	}
}

// Pool is a worker pool that has announced itself.
type Pool struct {
	Name         string   `json:"name"`
	Source       string   `json:"source"` // that it is announced at
	Sources      []string `json:"sources"`
	Paused       bool     `json:"paused"`
	OrderedSlots int      `json:"orderedSlots,omitzero"` // zero: it decides itself

	// These are sums over its processes.
	Slots        int     `json:"slots"`
	Busy         int     `json:"busy"`
	Suspended    int     `json:"suspended"`
	Retrying     int     `json:"retrying"`
	PerSecond    float64 `json:"completedPerSecond"`
	Completed    uint64  `json:"completed"`
	Failed       uint64  `json:"failed"`
	DeadLettered uint64  `json:"deadLettered"`
	Preempted    uint64  `json:"preempted"`

	Instances []Instance `json:"instances"`
}

// Instance is one process of a pool.
type Instance struct {
	Host      string    `json:"host"`
	Process   int       `json:"process"`
	Since     time.Time `json:"since"`
	Slots     int       `json:"slots"`
	Busy      int       `json:"busy"`
	Suspended int       `json:"suspended"`
	Retrying  int       `json:"retrying"`
	Paused    bool      `json:"paused"`
	Idle      string    `json:"idle,omitzero"` // why it does nothing
	PerSecond float64   `json:"completedPerSecond"`
}

// Pools returns the worker pools that have announced themselves.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	return list[Pool](ctx, c, "list pools", "", "/pools")
}

// PausePool has the pools of a name take no more messages and suspend the tasks that can
// be. Nothing is lost.
func (c *Client) PausePool(ctx context.Context, name string) error {
	return c.orderPool(ctx, name, "pause", nil)
}

// ResumePool lets paused pools go on.
func (c *Client) ResumePool(ctx context.Context, name string) error {
	return c.orderPool(ctx, name, "resume", nil)
}

// ResizePool sets the slots of each process of a pool; zero gives it back its own
// setting.
func (c *Client) ResizePool(ctx context.Context, name string, slots int) error {
	return c.orderPool(ctx, name, "resize", map[string]int{"slots": slots})
}

func (c *Client) orderPool(ctx context.Context, name, order string, body any) error {
	return c.call(ctx, operation{text: order + " pool", entity: name, method: http.MethodPost, path: path("pools", name, order), body: body}, nil)
}
