// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"iter"
	"net/http"
	"slices"
	"unsafe"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
)

// PoolSize is how many slots each process of a pool is to have.
type PoolSize struct {
	Slots *int `json:"slots"` // zero gives the pool back its own setting
}

var poolQuery = []parameter{
	{"source", "string", "Only the pool at this queue or subscription, if several have the name."},
}

// poolRoutes are the routes for worker pools. Pools are not entities: they announce
// themselves. What those at one source are ordered is a matter of that source, else of the
// namespace.
func (a *api) poolRoutes() []route {
	const one = "/pools/{pool}"
	order := func(verb, id, summary string, do func(c *call, name, source string) ([]broker.Pool, error)) route {
		return route{
			method: http.MethodPost, path: one + "/" + verb, id: id,
			summary: summary, query: poolQuery, result: list[broker.Pool]{},
			handle: func(c *call) (any, error) {
				l := listing[broker.Pool, broker.Pool]{c: c, field: "items", size: poolSize, view: itself}
				err := c.gathering(func() (err error) {
					l.items, err = do(c, c.PathValue("pool"), c.URL.Query().Get("source"))
					l.total = len(l.items)
					return err
				})
				if err != nil {
					return nil, err
				}
				return l.begin()
			},
		}
	}
	resize := order("resize", "resizePool", "Set the slots of each process of a pool; 0 gives it back its own setting.", resizePool)
	resize.body = PoolSize{}
	return []route{
		{
			method: http.MethodGet, path: "/pools", id: "listPools",
			summary: "List the worker pools that have announced themselves, with their processes.", query: listQuery, result: list[broker.Pool]{},
			handle: func(c *call) (any, error) {
				pools := func() (iter.Seq[broker.Pool], error) { return slices.Values(c.Broker.Pools()), nil }
				return pageOf(c, pools, func(p broker.Pool) string { return p.Name }, poolSize, itself)
			},
		},
		order("pause", "pausePool", "Have a pool take no more messages and suspend the tasks that can be. Nothing is lost.",
			func(c *call, name, source string) ([]broker.Pool, error) {
				return c.Broker.PausePools(c.Context(), name, source, true)
			}),
		order("resume", "resumePool", "Let a paused pool go on.",
			func(c *call, name, source string) ([]broker.Pool, error) {
				return c.Broker.PausePools(c.Context(), name, source, false)
			}),
		resize,
	}
}

// poolSize is what a pool takes in a page, with its processes.
func poolSize(p broker.Pool) int64 {
	const texts = 2 * limits.ClientText // of a process: its host and why it is idle
	return int64(unsafe.Sizeof(p)) + int64(len(p.Instances))*(int64(unsafe.Sizeof(broker.PoolInstance{}))+texts)
}

func itself(p broker.Pool) (broker.Pool, error) { return p, nil }

func resizePool(c *call, name, source string) ([]broker.Pool, error) {
	var size PoolSize
	if err := c.decode(&size, limits.Body); err != nil {
		return nil, err
	}
	if size.Slots == nil {
		return nil, problem.Bad("slots is missing; 0 gives the pool back its own setting.")
	}
	return c.Broker.ResizePools(c.Context(), name, source, *size.Slots)
}
