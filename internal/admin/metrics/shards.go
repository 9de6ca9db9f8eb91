// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of shards. Their names are part of the API and never change.
var (
	shardLabels   = []string{"shard"}
	shardSteps    = prometheus.NewDesc("triagemq_shard_step_seconds", "How long the steps of a shard took; nothing else happens in it meanwhile.", shardLabels, nil)
	shardLongest  = prometheus.NewDesc("triagemq_shard_step_longest_seconds", "The longest step since the start.", shardLabels, nil)
	shardSnaps    = prometheus.NewDesc("triagemq_shard_snapshots_total", "Snapshots begun, including those before the last start.", shardLabels, nil)
	shardWritten  = prometheus.NewDesc("triagemq_shard_written_bytes_total", "Bytes of records appended to the log, and replayed at the start.", shardLabels, nil)
	shardMoved    = prometheus.NewDesc("triagemq_shard_moved", "1 if another process has taken over the shard, which is not served here any more.", shardLabels, nil)
	shardSnapshot = prometheus.NewDesc("triagemq_shard_snapshot_bytes_total", "Bytes written for snapshots.", shardLabels, nil)
)

// shardCollector collects metrics of the shards. It is a prometheus.Collector.
type shardCollector struct{ Sources }

// Describe implements prometheus.Collector.
func (c *shardCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{shardSteps, shardLongest, shardSnaps, shardWritten, shardSnapshot, shardMoved} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *shardCollector) Collect(to chan<- prometheus.Metric) {
	for i, st := range c.Broker.ShardStats() {
		label := strconv.Itoa(i)
		below := make(map[float64]uint64, len(st.Steps))
		var all uint64
		for n, count := range st.Steps {
			all += count
			if n < len(st.Steps)-1 {
				below[st.StepBound(n).Seconds()] = all
			}
		}
		to <- prometheus.MustNewConstHistogram(shardSteps, all, st.StepTime.Seconds(), below, label)
		to <- prometheus.MustNewConstMetric(shardLongest, prometheus.GaugeValue, st.LongestStep.Seconds(), label)
		to <- prometheus.MustNewConstMetric(shardSnaps, prometheus.CounterValue, float64(st.Snapshots), label)
		to <- prometheus.MustNewConstMetric(shardWritten, prometheus.CounterValue, float64(st.Written), label)
		to <- prometheus.MustNewConstMetric(shardMoved, prometheus.GaugeValue, oneIf(st.Moved), label)
		to <- prometheus.MustNewConstMetric(shardSnapshot, prometheus.CounterValue, float64(st.SnapshotBytes), label)
	}
}
