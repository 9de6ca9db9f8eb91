// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
)

func hubDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("triagemq_hub_"+name, help, append([]string{"hub"}, labels...), nil)
}

// partitionMetric is a number that every partition of an event hub has.
type partitionMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*broker.PartitionRuntime) float64
}

// The metrics of event hubs. Their names are part of the API: they do not change after the
// first release.
var (
	partitionMetrics = []partitionMetric{
		{hubDesc("first_sequence_number", "Sequence number of the oldest event of a partition.", "partition"), prometheus.GaugeValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.First) }},
		{hubDesc("last_sequence_number", "Sequence number of the newest event of a partition; -1 if there never was one.", "partition"), prometheus.GaugeValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.Last) }},
		{hubDesc("bytes", "Size of the events that a partition retains.", "partition"), prometheus.GaugeValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.Bytes) }},
		{hubDesc("readers", "Readers of a partition.", "partition"), prometheus.GaugeValue,
			func(p *broker.PartitionRuntime) float64 { return float64(len(p.Readers)) }},
		{hubDesc("in_events_total", "Events that came to a partition since the start.", "partition"), prometheus.CounterValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.In.Events) }},
		{hubDesc("in_bytes_total", "Bytes that came to a partition since the start.", "partition"), prometheus.CounterValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.In.Bytes) }},
		{hubDesc("out_events_total", "Events of a partition that were read since the start, by all readers.", "partition"), prometheus.CounterValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.Out.Events) }},
		{hubDesc("out_bytes_total", "Bytes of a partition that were read since the start, by all readers.", "partition"), prometheus.CounterValue,
			func(p *broker.PartitionRuntime) float64 { return float64(p.Out.Bytes) }},
	}
	hubAvailable    = hubDesc("available", "0 if the events of a hub cannot be reached.")
	groupReaders    = hubDesc("group_readers", "Readers of a consumer group.", "group")
	groupPartitions = hubDesc("group_partitions", "Partitions that a consumer group reads.", "group")
	groupLag        = hubDesc("group_lag_events", "Events that the readers of a consumer group have not got yet, in the partitions that they read.", "group")
	groupLagBytes   = hubDesc("group_lag_bytes", "About how many bytes these events have.", "group")
	groupLagSeconds = hubDesc("group_lag_seconds", "Age of the oldest of these events.", "group")
	groupMembers    = hubDesc("group_members", "Members of a consumer group.", "group")
	groupChanges    = hubDesc("group_owner_changes_total", "Partitions that moved from one member of a consumer group to another since the start.", "group")
	hubsOmitted     = prometheus.NewDesc("triagemq_hubs_omitted", "Event hubs without metrics of their own because there are too many.", nil, nil)
)

// groupMetric is a number that each partition of a consumer group has, which has members, claims or
// checkpoints; ok is false if there is none.
type groupMetric struct {
	desc *prometheus.Desc
	of   func(*broker.GroupPartition) (v float64, ok bool)
}

func groupDesc(name, help string) *prometheus.Desc {
	return hubDesc("group_partition_"+name, help, "group", "partition")
}

var groupMetrics = []groupMetric{
	{groupDesc("owned", "1 if a member has the partition."), func(p *broker.GroupPartition) (float64, bool) { return oneIf(p.Owner != ""), true }},
	{groupDesc("epoch", "Epoch of the owner. It rises with each change of the owner and each rewind."),
		func(p *broker.GroupPartition) (float64, bool) { return float64(p.Epoch), true }},
	{groupDesc("lag_events", "Events that the group has not handled."), func(p *broker.GroupPartition) (float64, bool) { return float64(p.LagEvents), true }},
	{groupDesc("lag_bytes", "About how many bytes these events have."), func(p *broker.GroupPartition) (float64, bool) { return float64(p.LagBytes), true }},
	{groupDesc("lag_seconds", "Age of the oldest of these events."), func(p *broker.GroupPartition) (float64, bool) { return p.LagSeconds, true }},
	{groupDesc("gone_events", "Events that the group has not handled and that are not there any more, such as those older than the retention."),
		func(p *broker.GroupPartition) (float64, bool) { return float64(p.GoneEvents), true }},
	{groupDesc("skipped_events", "Events that were gone when the owners came to them. It falls when the group has no members any more."),
		func(p *broker.GroupPartition) (float64, bool) { return float64(p.SkippedEvents), true }},
	{groupDesc("stuck", "1 if the owner has events to handle and has handled none for half a minute."),
		func(p *broker.GroupPartition) (float64, bool) { return oneIf(p.Stuck), true }},
	{groupDesc("checkpoint_age_seconds", "Time since the last checkpoint."), func(p *broker.GroupPartition) (float64, bool) {
		if p.CheckpointAgeSeconds == nil {
			return 0, false
		}
		return *p.CheckpointAgeSeconds, true
	}},
}

// hubs is the event hubs. It is a source.
type hubs struct {
	Sources
	rows    []hubRow
	omitted int
}

// hubRow is what is kept of one event hub.
type hubRow struct {
	name    string
	runtime broker.HubRuntime
	groups  []groupRow
}

// groupRow is what is kept of a consumer group that anybody has used.
type groupRow struct {
	name       string
	members    int
	changes    uint64
	partitions []broker.GroupPartition
}

// families implements source.
func (*hubs) families() []*prometheus.Desc {
	ds := []*prometheus.Desc{hubAvailable, groupReaders, groupPartitions, groupLag, groupLagBytes, groupLagSeconds, groupMembers, groupChanges, hubsOmitted}
	for _, m := range partitionMetrics {
		ds = append(ds, m.desc)
	}
	for _, m := range groupMetrics {
		ds = append(ds, m.desc)
	}
	return ds
}

// load implements source.
func (h *hubs) load(ctx context.Context) (bytes int64) {
	const perPart = 256 // of a hub: a partition, a group, a partition of a group
	series := 0
	for _, hub := range h.Broker.Hubs() {
		if series >= limits.Series {
			h.omitted++
			continue
		}
		rt, err := h.Broker.HubRuntime(ctx, hub.Name)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			h.Log.Warn("cannot collect metrics", "entity", hub.Name, "err", err)
			break
		}
		series += 1 + len(partitionMetrics)*len(rt.Partitions) + 6*len(rt.Groups)
		row := hubRow{name: hub.Name, runtime: rt}
		series += h.loadGroups(ctx, &row, limits.Series-series)
		h.rows = append(h.rows, row)
		bytes += perPart * int64(1+len(rt.Partitions)+len(rt.Groups))
		for i := range rt.Partitions {
			bytes += perPart * int64(len(rt.Partitions[i].Readers))
		}
		for i := range row.groups {
			bytes += perPart * int64(1+len(row.groups[i].partitions))
		}
	}
	return bytes
}

// loadGroups reads the consumer groups of an event hub that anybody has used, as long as there
// are not more than most series. It returns how many there are.
func (h *hubs) loadGroups(ctx context.Context, row *hubRow, most int) (series int) {
	for _, g := range row.runtime.Groups {
		s, err := h.Broker.GroupState(ctx, row.name, g.Name)
		if err != nil || s == nil {
			continue // deleted meanwhile, or not available
		}
		used := slices.ContainsFunc(s.Partitions, func(p broker.GroupPartition) bool { return p.Epoch > 0 || p.Owner != "" || p.Checkpoint != nil })
		if len(s.Members) == 0 && !used {
			continue
		}
		if series += 2 + len(groupMetrics)*len(s.Partitions); series > most {
			return series
		}
		row.groups = append(row.groups, groupRow{g.Name, len(s.Members), s.OwnerChanges, s.Partitions})
	}
	return series
}

// tell implements source.
func (h *hubs) tell(to sink) {
	for i := range h.rows {
		h.rows[i].tell(to)
	}
	to.gauge(hubsOmitted, float64(h.omitted))
}

// tell tells what one event hub has.
func (row *hubRow) tell(to sink) {
	for i := range row.groups {
		row.groups[i].tell(to, row.name)
	}
	if row.runtime.Unavailable != "" {
		to.gauge(hubAvailable, 0, row.name)
		return
	}
	to.gauge(hubAvailable, 1, row.name)
	for i := range row.runtime.Partitions {
		p := &row.runtime.Partitions[i]
		for _, m := range partitionMetrics {
			to.set(m.desc, m.kind, m.of(p), row.name, p.ID)
		}
	}
	for _, g := range row.runtime.Groups {
		to.gauge(groupReaders, float64(g.Readers), row.name, g.Name)
		to.gauge(groupPartitions, float64(g.Partitions), row.name, g.Name)
		if g.Readers > 0 { // without a reader nothing is known
			to.gauge(groupLag, float64(g.LagEvents), row.name, g.Name)
			to.gauge(groupLagBytes, float64(g.LagBytes), row.name, g.Name)
			to.gauge(groupLagSeconds, g.LagSeconds, row.name, g.Name)
		}
	}
}

// tell tells what one consumer group has.
func (g *groupRow) tell(to sink, hub string) {
	to.gauge(groupMembers, float64(g.members), hub, g.name)
	to.set(groupChanges, prometheus.CounterValue, float64(g.changes), hub, g.name)
	for i := range g.partitions {
		for _, m := range groupMetrics {
			if v, ok := m.of(&g.partitions[i]); ok {
				to.gauge(m.desc, v, hub, g.name, g.partitions[i].ID)
			}
		}
	}
}
