// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/broker"
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
	{groupDesc("stuck", "1 if the owner has events to handle and has handled none for half a minute."),
		func(p *broker.GroupPartition) (float64, bool) { return oneIf(p.Stuck), true }},
	{groupDesc("checkpoint_age_seconds", "Time since the last checkpoint."), func(p *broker.GroupPartition) (float64, bool) {
		if p.CheckpointAgeSeconds == nil {
			return 0, false
		}
		return *p.CheckpointAgeSeconds, true
	}},
}

// hubCollector reads the event hubs for one scrape. It is a prometheus.Collector.
type hubCollector struct {
	Sources
	ctx context.Context // of the request that scrapes
}

// Describe implements prometheus.Collector.
func (c *hubCollector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range partitionMetrics {
		to <- m.desc
	}
	for _, m := range groupMetrics {
		to <- m.desc
	}
	for _, d := range []*prometheus.Desc{hubAvailable, groupReaders, groupPartitions, groupLag, groupLagBytes, groupLagSeconds, groupMembers, groupChanges, hubsOmitted} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *hubCollector) Collect(to chan<- prometheus.Metric) {
	series, omitted := 0, 0
	for _, h := range c.Broker.Hubs() {
		if series >= maxSeries {
			omitted++
			continue
		}
		rt, err := c.Broker.HubRuntime(c.ctx, h.Name)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			c.Log.Warn("cannot collect metrics", "entity", h.Name, "err", err)
			return
		}
		series += 1 + len(partitionMetrics)*len(rt.Partitions) + 6*len(rt.Groups)
		hubMetrics(to, h.Name, &rt)
		series += c.groups(to, h.Name, &rt, maxSeries-series)
	}
	to <- prometheus.MustNewConstMetric(hubsOmitted, prometheus.GaugeValue, float64(omitted))
}

// groups sends what the consumer groups of an event hub have that anybody has used, as long
// as there are not more than most series. It returns how many there are.
func (c *hubCollector) groups(to chan<- prometheus.Metric, hub string, rt *broker.HubRuntime, most int) (series int) {
	for _, g := range rt.Groups {
		s, err := c.Broker.GroupState(c.ctx, hub, g.Name)
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
		to <- prometheus.MustNewConstMetric(groupMembers, prometheus.GaugeValue, float64(len(s.Members)), hub, g.Name)
		to <- prometheus.MustNewConstMetric(groupChanges, prometheus.CounterValue, float64(s.OwnerChanges), hub, g.Name)
		for i := range s.Partitions {
			for _, m := range groupMetrics {
				if v, ok := m.of(&s.Partitions[i]); ok {
					to <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, v, hub, g.Name, s.Partitions[i].ID)
				}
			}
		}
	}
	return series
}

// hubMetrics sends what one event hub has.
func hubMetrics(to chan<- prometheus.Metric, hub string, rt *broker.HubRuntime) {
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{hub}, labels...)...)
	}
	if rt.Unavailable != "" {
		set(hubAvailable, 0)
		return
	}
	set(hubAvailable, 1)
	for i := range rt.Partitions {
		p := &rt.Partitions[i]
		for _, m := range partitionMetrics {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(p), hub, p.ID)
		}
	}
	for _, g := range rt.Groups {
		set(groupReaders, float64(g.Readers), g.Name)
		set(groupPartitions, float64(g.Partitions), g.Name)
		if g.Readers > 0 { // without a reader nothing is known
			set(groupLag, float64(g.LagEvents), g.Name)
			set(groupLagBytes, float64(g.LagBytes), g.Name)
			set(groupLagSeconds, g.LagSeconds, g.Name)
		}
	}
}
