// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"

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
	hubsOmitted     = prometheus.NewDesc("triagemq_hubs_omitted", "Event hubs without metrics of their own because there are too many.", nil, nil)
)

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
	for _, d := range []*prometheus.Desc{hubAvailable, groupReaders, groupPartitions, groupLag, groupLagSeconds, hubsOmitted} {
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
		series += 1 + len(partitionMetrics)*len(rt.Partitions) + 4*len(rt.Groups)
		hubMetrics(to, h.Name, &rt)
	}
	to <- prometheus.MustNewConstMetric(hubsOmitted, prometheus.GaugeValue, float64(omitted))
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
