// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
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

// GroupState is how the members of a consumer group share its partitions, and how far they
// are.
type GroupState struct {
	Members []struct {
		ID         string     `json:"id"`
		Name       string     `json:"name,omitzero"`
		Partitions int        `json:"partitions"`
		Connected  bool       `json:"connected"`
		Leaving    bool       `json:"leaving,omitzero"`
		Since      time.Time  `json:"since"`           // when it joined
		Heard      *time.Time `json:"heard,omitempty"` // when it last reported
	} `json:"members"`
	// OwnerChanges counts the partitions that moved from one member to another, since the
	// broker has opened the hub.
	OwnerChanges uint64 `json:"ownerChanges"`
	Partitions   []struct {
		ID    string     `json:"id"`
		State string     `json:"state"` // free, owned, revoking, paused or claimed
		Owner string     `json:"owner,omitzero"`
		Epoch int64      `json:"epoch"`
		Since *time.Time `json:"since,omitempty"` // when the owner got it

		Checkpoint           *int64   `json:"checkpoint,omitempty"` // nil is none, -2 before the first event
		CheckpointAgeSeconds *float64 `json:"checkpointAgeSeconds,omitempty"`
		Handled              *int64   `json:"handled,omitempty"` // as the owner has reported

		LagEvents     int64      `json:"lagEvents"` // that are not handled
		LagBytes      int64      `json:"lagBytes"`  // about
		LagSeconds    float64    `json:"lagSeconds"`
		GoneEvents    int64      `json:"goneEvents"`    // that are not handled and not there any more; not in the lag
		SkippedEvents uint64     `json:"skippedEvents"` // gone events that the owners have passed, since there are members
		Stuck         bool       `json:"stuck"`         // the owner has handled none of them for half a minute
		PausedUntil   *time.Time `json:"pausedUntil,omitempty"`
	} `json:"partitions"`
	// Changes are the last changes of owners since the broker has opened the hub, newest
	// last.
	Changes []struct {
		At        time.Time `json:"at"`
		Partition string    `json:"partition"`
		From      string    `json:"from,omitzero"` // "" is nobody
		To        string    `json:"to,omitzero"`
		Why       string    `json:"why"`
	} `json:"changes"`
}

// AllPartitions means every partition of a hub.
const AllPartitions = -1

// GroupState returns how a consumer group shares its partitions.
func (c *Client) GroupState(ctx context.Context, hub, group string) (GroupState, error) {
	g, err := get[stateOfGroup](ctx, c, "show consumer group", hub+"/"+group, path("hubs", hub, "groups", group))
	return g.State, err
}

type stateOfGroup struct {
	State GroupState `json:"state"`
}

// RewindGroup sets the checkpoint of a partition, or of AllPartitions: its owner reads on
// from there. A position is earliest, latest, a sequence number, a time as
// [time.RFC3339], or how long ago, such as -1h.
func (c *Client) RewindGroup(ctx context.Context, hub, group string, partition int, to string) error {
	return c.groupAction(ctx, "rewind", hub, group, partition, map[string]any{"to": to})
}

// ReleasePartition takes a partition of a consumer group from its owner, who does not get
// it back during the cool-down.
func (c *Client) ReleasePartition(ctx context.Context, hub, group string, partition int, coolDown time.Duration) error {
	return c.groupAction(ctx, "release", hub, group, partition, map[string]any{"coolDown": entity.Duration(coolDown)})
}

// PauseGroup keeps a partition, or AllPartitions, from all members of a consumer group for
// a time; zero is until ResumeGroup.
func (c *Client) PauseGroup(ctx context.Context, hub, group string, partition int, pause time.Duration) error {
	body := map[string]any{}
	if pause > 0 {
		body["for"] = entity.Duration(pause)
	}
	return c.groupAction(ctx, "pause", hub, group, partition, body)
}

// ResumeGroup ends the pause of a partition, or of AllPartitions.
func (c *Client) ResumeGroup(ctx context.Context, hub, group string, partition int) error {
	return c.groupAction(ctx, "resume", hub, group, partition, map[string]any{})
}

func (c *Client) groupAction(ctx context.Context, verb, hub, group string, partition int, body map[string]any) error {
	if partition != AllPartitions {
		body["partition"] = partition
	}
	_, err := put[stateOfGroup](ctx, c, http.MethodPost, verb+" consumer group", hub+"/"+group, path("hubs", hub, "groups", group, verb), body)
	return err
}
