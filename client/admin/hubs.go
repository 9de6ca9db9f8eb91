// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net/http"
	"time"
)

// HubEntity is an event hub: what it was defined as, and what it is like now.
type HubEntity struct {
	Definition Hub        `json:"definition"`
	Runtime    HubRuntime `json:"runtime"`
}

// HubRuntime is what an event hub is like now. In and Out count since the broker has
// opened the hub.
type HubRuntime struct {
	Unavailable string     `json:"unavailable,omitzero"` // why the events cannot be reached
	Events      int64      `json:"events"`               // that are retained
	SizeInBytes int64      `json:"sizeInBytes"`
	In          flow       `json:"in"`
	Out         flow       `json:"out"`
	Readers     int        `json:"readers"`
	LastEvent   *time.Time `json:"lastEvent,omitempty"` // when the last one came; nil without any
	Created     time.Time  `json:"createdAt"`
	Updated     time.Time  `json:"updatedAt"`
	Accessed    time.Time  `json:"accessedAt"`

	// Groups are all consumer groups, and what their readers show of them.
	Groups []struct {
		Name       string  `json:"name"`
		Readers    int     `json:"readers"`
		Partitions int     `json:"partitions"` // that have a reader
		LagEvents  int64   `json:"lagEvents"`  // in these partitions together
		LagBytes   int64   `json:"lagBytes"`   // about
		LagSeconds float64 `json:"lagSeconds"` // age of the oldest event that was not read in these
	} `json:"groups"`
	Partitions []PartitionRuntime `json:"partitions,omitempty"` // not in lists
}

// flow counts events.
type flow = struct {
	Events    uint64  `json:"events"`
	Bytes     uint64  `json:"bytes"`
	PerSecond float64 `json:"perSecond"` // events, lately
}

// PartitionRuntime is what a partition is like now. An empty one has First = Last+1.
type PartitionRuntime struct {
	ID          string     `json:"id"`
	First       int64      `json:"firstSequenceNumber"`
	Last        int64      `json:"lastSequenceNumber"`
	LastEvent   *time.Time `json:"lastEvent,omitempty"` // when the last one came; nil without any
	SizeInBytes int64      `json:"sizeInBytes"`
	In          flow       `json:"in"`
	Out         flow       `json:"out"`
	Readers     []struct {
		Group      string    `json:"group"`
		Name       string    `json:"name"`
		Epoch      *int64    `json:"epoch,omitempty"` // nil is none
		Next       int64     `json:"nextSequenceNumber"`
		LagEvents  int64     `json:"lagEvents"`
		LagBytes   int64     `json:"lagBytes"` // about
		LagSeconds float64   `json:"lagSeconds"`
		Since      time.Time `json:"since"`
	} `json:"readers"`
}

// Hubs returns all event hubs by name, without their partitions.
func (c *Client) Hubs(ctx context.Context) ([]HubEntity, error) {
	return list[HubEntity](ctx, c, "list hubs", "", "/hubs")
}

// Hub returns an event hub with its partitions and their readers.
func (c *Client) Hub(ctx context.Context, name string) (HubEntity, error) {
	return get[HubEntity](ctx, c, "show hub", name, path("hubs", name))
}

// CreateHub creates an event hub; [client.ErrExists] if something has that name.
func (c *Client) CreateHub(ctx context.Context, h Hub) (HubEntity, error) {
	return put[HubEntity](ctx, c, http.MethodPost, "create hub", h.Name, "/hubs", h)
}

// PutHub creates an event hub or replaces its definition: what is not set has its default
// again, except partitions and consumer groups, which stay.
func (c *Client) PutHub(ctx context.Context, h Hub) (HubEntity, error) {
	return put[HubEntity](ctx, c, http.MethodPut, "put hub", h.Name, path("hubs", h.Name), h)
}

// DeleteHub deletes an event hub with all its events.
func (c *Client) DeleteHub(ctx context.Context, name string) error {
	return c.remove(ctx, "delete hub", name, path("hubs", name))
}

// groupEntity is a consumer group in an answer.
type groupEntity struct {
	Definition ConsumerGroup `json:"definition"`
}

// Groups returns the consumer groups of an event hub by name, $Default among them. How far
// they are behind is in the runtime of the hub.
func (c *Client) Groups(ctx context.Context, hub string) ([]ConsumerGroup, error) {
	found, err := list[groupEntity](ctx, c, "list consumer groups of", hub, path("hubs", hub, "groups"))
	groups := make([]ConsumerGroup, len(found))
	for i, g := range found {
		groups[i] = g.Definition
	}
	return groups, err
}

// PutGroup creates a consumer group or replaces its definition.
func (c *Client) PutGroup(ctx context.Context, hub string, g ConsumerGroup) (ConsumerGroup, error) {
	made, err := put[groupEntity](ctx, c, http.MethodPut, "put consumer group", hub+"/"+g.Name, path("hubs", hub, "groups", g.Name), g)
	return made.Definition, err
}

// DeleteGroup removes a consumer group; $Default stays.
func (c *Client) DeleteGroup(ctx context.Context, hub, name string) error {
	return c.remove(ctx, "delete consumer group", hub+"/"+name, path("hubs", hub, "groups", name))
}
