// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"iter"
	"net/http"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// Entity is a queue, topic or subscription: what it was defined as, what it is
// like now, and what of it is suspended.
type Entity[D any] struct {
	Definition D              `json:"definition"`
	Runtime    broker.Runtime `json:"runtime"`
	Paused     broker.Pause   `json:"paused"`
}

// view completes a definition with what the broker knows about the moment.
func view[D any](c *call, addr string, d D) (Entity[D], error) {
	rt, err := c.Broker.Runtime(c.Context(), addr)
	if err != nil {
		return Entity[D]{}, err
	}
	if rt.Levels == nil {
		rt.Levels = []broker.LevelCount{}
	}
	paused, err := c.Broker.Paused(addr)
	return Entity[D]{d, rt, paused}, err
}

// named settles the name of a definition that is put at a path.
func named(given *string, path string) error {
	if *given != "" && entity.Key(*given) != entity.Key(path) {
		return problem.Bad("The name is %q, but the path says %q.", *given, path)
	}
	*given = path
	return nil
}

// mayForward checks that the caller may send to where messages are to go.
func (c *call) mayForward(targets ...string) error {
	for _, target := range targets {
		if target == "" {
			continue
		}
		if err := caller.Require(c.grant, access.Send, caller.Path(target)); err != nil {
			return err
		}
	}
	return nil
}

// createOrUpdate updates a definition if it exists, and creates it otherwise.
func createOrUpdate[D any](create, update func() (D, error)) (d D, made bool, err error) {
	if d, err = update(); errors.Is(err, broker.ErrNotFound) {
		d, err = create()
		made = err == nil
	}
	return d, made, err
}

// reply answers with an entity, and with 201 if it is new.
func reply[D any](c *call, addr string, d D, made bool) (any, error) {
	v, err := view(c, addr, d)
	if err == nil && made {
		return created{v}, nil
	}
	return v, err
}

// pauseRoutes suspend an entity and let it go on.
func (a *api) pauseRoutes(path, noun string) []route {
	return []route{
		{
			method: http.MethodPut, path: path + "/paused", id: "pause" + noun,
			summary: "Suspend sending, receiving or both. Nothing is lost; consumers stay attached and get nothing.",
			body:    broker.Pause{}, result: broker.Pause{},
			handle: func(c *call) (any, error) {
				var p broker.Pause
				if err := c.decode(&p, limits.Body); err != nil {
					return nil, err
				}
				return p, c.Broker.Pause(c.Context(), c.address(), p)
			},
		},
		{
			method: http.MethodDelete, path: path + "/paused", id: "resume" + noun,
			summary: "Let everything go on.", result: broker.Pause{},
			handle: func(c *call) (any, error) {
				return broker.Pause{}, c.Broker.Pause(c.Context(), c.address(), broker.Pause{})
			},
		},
	}
}

func (a *api) queueRoutes() []route {
	const one = "/queues/{queue}"
	type item = Entity[entity.Queue]
	answer := func(c *call, q entity.Queue, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return view(c, q.Name, q)
	}
	return append([]route{
		{
			method: http.MethodGet, path: "/queues", id: "listQueues",
			summary: "List queues by name.", query: listQuery, result: list[item]{},
			handle: func(c *call) (any, error) {
				queues := func() (iter.Seq[string], error) {
					return names(c.Broker.AllQueues(), func(q entity.Queue) string { return q.Name }), nil
				}
				return page(c, queues, func(name string) (item, error) {
					q, err := c.Broker.Queue(name)
					if err != nil {
						return item{}, err
					}
					return view(c, q.Name, q)
				})
			},
		},
		{
			method: http.MethodPost, path: "/queues", id: "createQueue", status: http.StatusCreated,
			summary: "Create a queue; 409 if there is one of that name.", body: entity.Queue{}, result: item{},
			handle: func(c *call) (any, error) {
				var q entity.Queue
				if err := c.decode(&q, limits.Body); err != nil {
					return nil, err
				}
				if err := c.mayForward(q.ForwardTo, q.ForwardDeadLetteredMessagesTo); err != nil {
					return nil, err
				}
				q, err := c.Broker.CreateQueue(c.Context(), q)
				return answer(c, q, err)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getQueue",
			summary: "Show a queue with its counts by state and level.", result: item{},
			handle: func(c *call) (any, error) {
				q, err := c.Broker.Queue(c.PathValue("queue"))
				return answer(c, q, err)
			},
		},
		{
			method: http.MethodPut, path: one, id: "putQueue",
			summary: "Create a queue or replace its definition. Properties that are left out are reset to their defaults; the policy is kept unless it is null.", body: entity.Queue{}, result: item{},
			handle: func(c *call) (any, error) {
				var q entity.Queue
				if err := c.decode(&q, limits.Body); err != nil {
					return nil, err
				}
				if err := named(&q.Name, c.PathValue("queue")); err != nil {
					return nil, err
				}
				if err := c.mayForward(q.ForwardTo, q.ForwardDeadLetteredMessagesTo); err != nil {
					return nil, err
				}
				q, made, err := createOrUpdate(
					func() (entity.Queue, error) { return c.Broker.CreateQueue(c.Context(), q) },
					func() (entity.Queue, error) { return c.Broker.UpdateQueue(c.Context(), q) })
				if err != nil {
					return nil, err
				}
				return reply(c, q.Name, q, made)
			},
		},
		{
			method: http.MethodPatch, path: one, id: "patchQueue",
			summary: "Change properties of a queue; null resets a property to its default and removes the policy.", body: entity.Queue{}, result: item{},
			handle: func(c *call) (any, error) {
				old, q, err := merge(c, func() (entity.Queue, error) { return c.Broker.Queue(c.PathValue("queue")) })
				if err == nil {
					err = named(&q.Name, old.Name)
				}
				if err == nil {
					err = c.mayForward(q.ForwardTo, q.ForwardDeadLetteredMessagesTo)
				}
				if err == nil {
					q, err = c.Broker.UpdateQueue(c.Context(), q)
				}
				return answer(c, q, err)
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteQueue", status: http.StatusNoContent,
			summary: "Delete a queue with all its messages.",
			handle: func(c *call) (any, error) {
				return nil, c.Broker.DeleteQueue(c.Context(), c.PathValue("queue"))
			},
		},
	}, a.pauseRoutes(one, "Queue")...)
}
