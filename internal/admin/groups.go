// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// GroupRewind says where a consumer group reads on.
type GroupRewind struct {
	Partition *int `json:"partition,omitempty"` // nil is all partitions
	// To is earliest, latest, a sequence number, a time such as 2026-01-31T12:00:00Z, or how
	// long ago, such as -1h.
	To string `json:"to"`
}

// GroupRelease takes a partition from its owner.
type GroupRelease struct {
	Partition *int `json:"partition"`
	// CoolDown is how long the owner does not get it back; one minute if it is left out.
	CoolDown *entity.Duration `json:"coolDown,omitempty"`
}

// GroupPause keeps partitions from all members.
type GroupPause struct {
	Partition *int `json:"partition,omitempty"` // nil is all partitions
	// For is how long; until it is resumed if it is left out.
	For *entity.Duration `json:"for,omitempty"`
}

// GroupResume ends a pause.
type GroupResume struct {
	Partition *int `json:"partition,omitempty"` // nil is all partitions
}

const (
	// defaultCoolDown is enough for others to start with a partition.
	defaultCoolDown = time.Minute
	// forever is how long a pause lasts that nobody ends.
	forever = 100 * 365 * 24 * time.Hour
)

// groupActions are what an operator does to the partitions of a consumer group.
func (a *api) groupActions() []route {
	action := func(verb, id, summary string, body any, do func(c *call, group string) error) route {
		return route{
			method: http.MethodPost, path: "/hubs/{hub}/groups/{group}/" + verb, id: id,
			summary: summary, body: body, result: GroupEntity{},
			handle: func(c *call) (any, error) {
				hub := c.PathValue("hub")
				g, err := c.Broker.ConsumerGroup(hub, c.PathValue("group"))
				if err != nil {
					return nil, err
				}
				if err := do(c, hub+"/ConsumerGroups/"+g.Name); err != nil {
					return nil, err
				}
				return groupWithState(c, g)
			},
		}
	}
	return []route{
		action("rewind", "rewindGroup", "Set the checkpoints of partitions, back or forth. Owners keep their partitions and read on from there.", GroupRewind{}, rewindGroup),
		action("release", "releasePartition", "Take a partition from its owner as a planned move.", GroupRelease{}, releasePartition),
		action("pause", "pauseGroup", "Keep partitions from all members, for a time or until they are resumed.", GroupPause{}, pauseGroup),
		action("resume", "resumeGroup", "End the pause of partitions.", GroupResume{}, resumeGroup),
	}
}

// groupWithState is a consumer group with its members and partitions.
func groupWithState(c *call, g entity.ConsumerGroup) (any, error) {
	return gathered(c, func() (v GroupEntity, err error) {
		hub := c.PathValue("hub")
		rt, err := c.Broker.HubRuntime(c.Context(), hub)
		if err != nil {
			return v, err
		}
		v = groupView(g, rt)
		v.State, err = c.Broker.GroupState(c.Context(), hub, g.Name)
		return v, err
	})
}

func rewindGroup(c *call, group string) error {
	var r GroupRewind
	if err := c.decode(&r, limits.Body); err != nil {
		return err
	}
	to, err := broker.ParseStart(r.To, time.Now())
	if err != nil {
		return err
	}
	at, err := c.partitions(r.Partition)
	if err != nil {
		return err
	}
	_, err = c.Broker.RewindGroup(c.Context(), group, at, to)
	return err
}

func releasePartition(c *call, group string) error {
	var r GroupRelease
	if err := c.decode(&r, limits.Body); err != nil {
		return err
	}
	if r.Partition == nil {
		return problem.Bad("partition is missing.")
	}
	coolDown := defaultCoolDown
	if r.CoolDown != nil {
		coolDown = r.CoolDown.Std()
	}
	at, err := c.partitions(r.Partition)
	if err != nil {
		return err
	}
	return c.Broker.MoveAwayGroup(c.Context(), group, at[0], coolDown)
}

func pauseGroup(c *call, group string) error {
	var r GroupPause
	if err := c.decode(&r, limits.Body); err != nil {
		return err
	}
	pause := forever
	if r.For != nil {
		pause = min(r.For.Std(), forever)
	}
	return c.pauseUntil(r.Partition, group, time.Now().Add(pause))
}

func resumeGroup(c *call, group string) error {
	var r GroupResume
	if err := c.decode(&r, limits.Body); err != nil {
		return err
	}
	return c.pauseUntil(r.Partition, group, time.Time{})
}

func (c *call) pauseUntil(partition *int, group string, until time.Time) error {
	at, err := c.partitions(partition)
	if err != nil {
		return err
	}
	return c.Broker.PauseGroup(c.Context(), group, at, until)
}

// partitions returns the partition that a request is about, or all of the hub if it is nil.
func (c *call) partitions(partition *int) ([]int, error) {
	h, err := c.Broker.Hub(c.PathValue("hub"))
	if err != nil {
		return nil, err
	}
	if partition != nil {
		if *partition < 0 || *partition >= h.PartitionCount {
			return nil, problem.NotFound("The partitions of %q are 0 to %d; there is no %d.", h.Name, h.PartitionCount-1, *partition)
		}
		return []int{*partition}, nil
	}
	all := make([]int, h.PartitionCount)
	for p := range all {
		all[p] = p
	}
	return all, nil
}
