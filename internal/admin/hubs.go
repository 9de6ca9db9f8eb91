// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"iter"
	"net/http"
	"slices"
	"unsafe"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// HubEntity is an event hub: what it was defined as, and what it is like now.
type HubEntity struct {
	Definition entity.Hub        `json:"definition"`
	Runtime    broker.HubRuntime `json:"runtime"`
}

// GroupEntity is a consumer group of an event hub: what it was defined as, what its readers
// show, and how its members share the partitions.
type GroupEntity struct {
	Definition entity.ConsumerGroup `json:"definition"`
	Runtime    broker.GroupRuntime  `json:"runtime"`
	State      *broker.GroupState   `json:"state,omitempty"` // not in lists
}

// hubView completes a definition with what the broker knows about the moment.
func hubView(c *call, h entity.Hub) (HubEntity, error) {
	rt, err := c.Broker.HubRuntime(c.Context(), h.Name)
	return HubEntity{h, rt}, err
}

func hubAnswer(c *call, h entity.Hub, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return gathered(c, func() (HubEntity, error) { return hubView(c, h) })
}

func (a *api) hubRoutes() []route {
	const one = "/hubs/{hub}"
	return []route{
		{
			method: http.MethodGet, path: "/hubs", id: "listHubs",
			summary: "List event hubs by name. Their partitions are left out.", query: listQuery, result: list[HubEntity]{},
			handle: func(c *call) (any, error) {
				hubs := func() (iter.Seq[string], error) {
					return names(slices.Values(c.Broker.Hubs()), func(h entity.Hub) string { return h.Name }), nil
				}
				return page(c, hubs, func(name string) (HubEntity, error) {
					var v HubEntity
					err := c.gathering(func() error {
						h, err := c.Broker.Hub(name)
						if err == nil {
							v, err = hubView(c, h)
						}
						v.Runtime.Partitions = nil
						return err
					})
					return v, err
				})
			},
		},
		{
			method: http.MethodPost, path: "/hubs", id: "createHub", status: http.StatusCreated,
			summary: "Create an event hub with its consumer groups; 409 if something has that name.", body: entity.Hub{}, result: HubEntity{},
			handle: func(c *call) (any, error) {
				var h entity.Hub
				if err := c.decode(&h, limits.Body); err != nil {
					return nil, err
				}
				h, err := c.Broker.CreateHub(c.Context(), h)
				return hubAnswer(c, h, err)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getHub",
			summary: "Show an event hub with its partitions, their readers, and how far consumer groups are behind.", result: HubEntity{},
			handle: func(c *call) (any, error) {
				h, err := c.Broker.Hub(c.PathValue("hub"))
				return hubAnswer(c, h, err)
			},
		},
		{
			method: http.MethodPut, path: one, id: "putHub",
			summary: "Create an event hub or replace its definition. Properties that are left out are reset to their defaults; partitions and consumer groups are kept. Partitions can be added, never removed.",
			body:    entity.Hub{}, result: HubEntity{}, handle: putHub,
		},
		{
			method: http.MethodPatch, path: one, id: "patchHub",
			summary: "Change properties of an event hub, at once; null resets a property to its default.", body: entity.Hub{}, result: HubEntity{},
			handle: func(c *call) (any, error) {
				old, h, err := merge(c, func() (entity.Hub, error) {
					h, err := c.Broker.Hub(c.PathValue("hub"))
					h.ConsumerGroups = nil // those that are added meanwhile stay
					return h, err
				})
				if err == nil {
					err = named(&h.Name, old.Name)
				}
				if err == nil {
					h, err = c.Broker.UpdateHub(c.Context(), h)
				}
				return hubAnswer(c, h, err)
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteHub", status: http.StatusNoContent,
			summary: "Delete an event hub with all its events.",
			handle: func(c *call) (any, error) {
				return nil, c.Broker.DeleteHub(c.Context(), c.PathValue("hub"))
			},
		},
		{
			method: http.MethodGet, path: one + "/partitions/{partition}", id: "getPartition",
			summary: "Show a partition of an event hub with its readers.", result: broker.PartitionRuntime{},
			handle: func(c *call) (any, error) {
				return gathered(c, func() (broker.PartitionRuntime, error) {
					return partition(c, c.PathValue("hub"), c.PathValue("partition"))
				})
			},
		},
	}
}

// partition returns what a partition of a hub is like now.
func partition(c *call, hub, id string) (none broker.PartitionRuntime, err error) {
	rt, err := c.Broker.HubRuntime(c.Context(), hub)
	if err != nil {
		return none, err
	}
	if rt.Unavailable != "" {
		return none, &problem.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: rt.Unavailable}
	}
	i := slices.IndexFunc(rt.Partitions, func(p broker.PartitionRuntime) bool { return p.ID == id })
	if i < 0 {
		return none, problem.NotFound("The partitions of %q are 0 to %d; there is no %q.", hub, len(rt.Partitions)-1, id)
	}
	return rt.Partitions[i], nil
}

func putHub(c *call) (any, error) {
	var h entity.Hub
	if err := c.decode(&h, limits.Body); err != nil {
		return nil, err
	}
	if err := named(&h.Name, c.PathValue("hub")); err != nil {
		return nil, err
	}
	h, made, err := createOrUpdate(
		func() (entity.Hub, error) { return c.Broker.CreateHub(c.Context(), h) },
		func() (entity.Hub, error) { return c.Broker.UpdateHub(c.Context(), h) })
	if err != nil {
		return nil, err
	}
	v, err := hubAnswer(c, h, nil)
	if err == nil && made {
		return created{v}, nil
	}
	return v, err
}

func (a *api) groupRoutes() []route {
	const all = "/hubs/{hub}/groups"
	const one = all + "/{group}"
	answer := func(c *call, g entity.ConsumerGroup, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return gathered(c, func() (GroupEntity, error) {
			rt, err := c.Broker.HubRuntime(c.Context(), c.PathValue("hub"))
			return groupView(g, rt), err
		})
	}
	return []route{
		{
			method: http.MethodGet, path: all, id: "listGroups",
			summary: "List the consumer groups of an event hub by name, and how far they are behind.", query: listQuery, result: list[GroupEntity]{},
			handle: func(c *call) (any, error) {
				hub := c.PathValue("hub")
				groups := func() (iter.Seq[broker.GroupRuntime], error) {
					if _, err := c.Broker.Hub(hub); err != nil {
						return nil, err
					}
					rt, err := c.Broker.HubRuntime(c.Context(), hub)
					return slices.Values(rt.Groups), err
				}
				size := func(g broker.GroupRuntime) int64 { return int64(unsafe.Sizeof(g)) + int64(len(g.Name)) }
				return pageOf(c, groups, func(g broker.GroupRuntime) string { return g.Name }, size,
					func(g broker.GroupRuntime) (GroupEntity, error) {
						def, err := c.Broker.ConsumerGroup(hub, g.Name)
						return GroupEntity{Definition: def, Runtime: g}, err
					})
			},
		},
		{
			method: http.MethodPost, path: all, id: "createGroup", status: http.StatusCreated,
			summary: "Add a consumer group; 409 if there is one of that name.", body: entity.ConsumerGroup{}, result: GroupEntity{},
			handle: func(c *call) (any, error) {
				var g entity.ConsumerGroup
				if err := c.decode(&g, limits.Body); err != nil {
					return nil, err
				}
				g, err := c.Broker.CreateConsumerGroup(c.Context(), c.PathValue("hub"), g)
				return answer(c, g, err)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getGroup",
			summary: "Show a consumer group: how far it is behind, its members, their partitions and checkpoints, and the last changes of owners.", result: GroupEntity{},
			handle: func(c *call) (any, error) {
				g, err := c.Broker.ConsumerGroup(c.PathValue("hub"), c.PathValue("group"))
				if err != nil {
					return nil, err
				}
				return groupWithState(c, g)
			},
		},
		{
			method: http.MethodPut, path: one, id: "putGroup",
			summary: "Create a consumer group or replace its definition.", body: entity.ConsumerGroup{}, result: GroupEntity{},
			handle: func(c *call) (any, error) {
				hub := c.PathValue("hub")
				if _, err := c.Broker.Hub(hub); err != nil {
					return nil, err
				}
				var g entity.ConsumerGroup
				if err := c.decode(&g, limits.Body); err != nil {
					return nil, err
				}
				if err := named(&g.Name, c.PathValue("group")); err != nil {
					return nil, err
				}
				g, made, err := createOrUpdate(
					func() (entity.ConsumerGroup, error) { return c.Broker.CreateConsumerGroup(c.Context(), hub, g) },
					func() (entity.ConsumerGroup, error) { return c.Broker.UpdateConsumerGroup(c.Context(), hub, g) })
				v, err := answer(c, g, err)
				if err == nil && made {
					return created{v}, nil
				}
				return v, err
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteGroup", status: http.StatusNoContent,
			summary: "Delete a consumer group. Every event hub keeps its $Default.",
			handle: func(c *call) (any, error) {
				return nil, c.Broker.DeleteConsumerGroup(c.Context(), c.PathValue("hub"), c.PathValue("group"))
			},
		},
	}
}

// groupView completes a consumer group with the figures of its hub.
func groupView(g entity.ConsumerGroup, rt broker.HubRuntime) GroupEntity {
	v := GroupEntity{Definition: g, Runtime: broker.GroupRuntime{Name: g.Name}}
	if i := slices.IndexFunc(rt.Groups, func(r broker.GroupRuntime) bool { return r.Name == g.Name }); i >= 0 {
		v.Runtime = rt.Groups[i]
	}
	return v
}
