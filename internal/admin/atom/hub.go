// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const (
	elementHub       = "EventHubDescription"
	elementGroup     = "ConsumerGroupDescription"
	elementPartition = "PartitionDescription"

	nsArrays = "http://schemas.microsoft.com/2003/10/Serialization/Arrays"
)

const day = 24 * time.Hour

// days is a retention as clients know it. Without end it is the most that they can read.
func days(d entity.Duration) int64 {
	if d >= entity.Forever {
		return math.MaxInt32
	}
	return int64((d.Std() + day - 1) / day)
}

// readHub reads a hub as readQueue reads a queue.
func readHub(name string, d *element, old *entity.Hub) (entity.Hub, error) {
	h := entity.Hub{Name: name}
	if old != nil {
		h = *old
		h.ConsumerGroups = nil // they have separate requests
	}
	r := reader{element: d}
	partitions, kept := int64(h.PartitionCount), days(h.MessageRetention)
	retained := kept
	r.integer("PartitionCount", &partitions)
	r.integer("MessageRetentionInDays", &retained)
	r.authorization(&h.AuthorizationRules)
	r.status(&h.Status)
	r.str("UserMetadata", &h.UserMetadata)
	h.PartitionCount = int(min(max(partitions, math.MinInt32), math.MaxInt32))
	switch most := int64(math.MaxInt64 / day); {
	case retained == kept:
	case retained == math.MaxInt32:
		h.MessageRetention = entity.Forever
	case retained < 1 || retained > most:
		r.faults = append(r.faults, entity.Fault{Field: "MessageRetentionInDays", Problem: strconv.FormatInt(retained, 10) + " is not a number of days"})
	default:
		h.MessageRetention = entity.Duration(time.Duration(retained) * day)
	}
	return h, r.err()
}

func (c *call) putHub(d *element) error {
	var old *entity.Hub
	put := c.Broker.CreateHub
	if c.updates() {
		h, err := c.Broker.Hub(c.entity)
		if err != nil {
			return err
		}
		old, put = &h, c.Broker.UpdateHub
	}
	h, err := readHub(c.entity, d, old)
	if err != nil {
		return err
	}
	if _, err := put(c.Context(), h); err != nil {
		return err
	}
	return c.writeHub()
}

func (c *call) writeHub() error {
	h, err := c.Broker.Hub(c.entity)
	if err != nil {
		return err
	}
	return c.hubEntry(h)
}

func (c *call) hubEntry(h entity.Hub) error {
	leave, err := c.gatherers.Take(c.Context(), c.grant.Account()) // it has a thousand partitions
	if err != nil {
		return err
	}
	defer leave()
	rt, err := c.Broker.HubRuntime(c.Context(), h.Name)
	if err != nil {
		return err
	}
	times := broker.Runtime{CreatedAt: rt.CreatedAt, UpdatedAt: rt.UpdatedAt}
	c.entry(target{kind: kindEntity, entity: h.Name}, h.Name, times, func(w *writer) { w.hub(h, rt) })
	return nil
}

func (w *writer) hub(h entity.Hub, rt broker.HubRuntime) {
	w.describe(elementHub)
	w.integer("MessageRetentionInDays", days(h.MessageRetention))
	w.authorization(h.AuthorizationRules)
	w.leaf("Status", string(h.Status))
	w.instant("CreatedAt", rt.CreatedAt)
	w.instant("UpdatedAt", rt.UpdatedAt)
	w.integer("PartitionCount", int64(h.PartitionCount))
	w.open("PartitionIds", attr{"xmlns:d2p1", nsArrays})
	for i := range h.PartitionCount {
		w.leaf("d2p1:string", strconv.Itoa(i))
	}
	w.close("PartitionIds")
	w.leaf("EntityAvailabilityStatus", "Available")
	w.given("UserMetadata", h.UserMetadata)
	w.close(elementHub)
}

func (c *call) putGroup(d *element) error {
	g := entity.ConsumerGroup{Name: c.group}
	put := c.Broker.CreateConsumerGroup
	if c.updates() {
		old, err := c.Broker.ConsumerGroup(c.entity, c.group)
		if err != nil {
			return err
		}
		g, put = old, c.Broker.UpdateConsumerGroup
	}
	r := reader{element: d}
	r.str("UserMetadata", &g.UserMetadata)
	if err := r.err(); err != nil {
		return err
	}
	if _, err := put(c.Context(), c.entity, g); err != nil {
		return err
	}
	return c.writeGroup()
}

func (c *call) writeGroup() error {
	g, err := c.Broker.ConsumerGroup(c.entity, c.group)
	if err != nil {
		return err
	}
	return c.groupEntry(g)
}

func (c *call) groupEntry(g entity.ConsumerGroup) error {
	times := broker.Runtime{CreatedAt: g.CreatedAt, UpdatedAt: cmp.Or(g.UpdatedAt, g.CreatedAt)}
	c.entry(target{kind: kindGroup, entity: c.entity, group: g.Name}, g.Name, times, func(w *writer) {
		w.describe(elementGroup)
		w.instant("CreatedAt", times.CreatedAt)
		w.instant("UpdatedAt", times.UpdatedAt)
		w.leaf("EventHubPath", c.entity)
		w.leaf("Name", g.Name)
		w.given("UserMetadata", g.UserMetadata)
		w.close(elementGroup)
	})
	return nil
}

// partitions returns the partitions of the hub, if it has the consumer group.
func (c *call) partitions() ([]broker.PartitionRuntime, error) {
	if _, err := c.Broker.ConsumerGroup(c.entity, c.group); err != nil {
		return nil, err
	}
	rt, err := c.Broker.HubRuntime(c.Context(), c.entity)
	if err == nil && rt.Unavailable != "" {
		err = &problem.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: rt.Unavailable}
	}
	for i := range rt.Partitions {
		rt.Partitions[i].Readers = nil // they are not shown
	}
	return rt.Partitions, err
}

func (c *call) writePartition() error {
	leave, err := c.gatherers.Take(c.Context(), c.grant.Account())
	if err != nil {
		return err
	}
	defer leave()
	all, err := c.partitions()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p broker.PartitionRuntime) bool { return p.ID == c.partition })
	if i < 0 {
		return problem.NotFound("The event hub '%s' has no partition '%s'.", c.entity, c.partition)
	}
	return c.partitionEntry(all[i])
}

func (c *call) partitionEntry(p broker.PartitionRuntime) error {
	t := target{kind: kindPartition, entity: c.entity, group: c.group, partition: p.ID}
	c.entry(t, p.ID, broker.Runtime{}, func(w *writer) {
		w.describe(elementPartition)
		w.integer("SizeInBytes", p.Bytes)
		w.integer("BeginSequenceNumber", p.First)
		w.integer("EndSequenceNumber", p.Last)
		w.integer("IncomingBytesPerSecond", bytesPerSecond(p.In))
		w.integer("OutgoingBytesPerSecond", bytesPerSecond(p.Out))
		w.close(elementPartition)
	})
	return nil
}

// bytesPerSecond estimates it from the rate of events and their average size.
func bytesPerSecond(f broker.EventFlow) int64 {
	if f.Events == 0 {
		return 0
	}
	return int64(f.PerSecond * float64(f.Bytes) / float64(f.Events))
}
