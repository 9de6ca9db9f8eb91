// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/objective"
)

var classLabels = []string{"entity", "class"}

func classDesc(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc("triagemq_class_"+name, help, append(append([]string{}, classLabels...), more...), nil)
}

// The metrics of classes. Their names are part of the API: they do not change after the first release. The
// class is empty for messages in none.
var (
	classWait     = classDesc("wait_seconds", "Time from enqueued until first delivered.")
	classService  = classDesc("service_seconds", "Time from last delivered until completed.")
	classEndToEnd = classDesc("end_to_end_seconds", "Time from enqueued until completed.")
	classRecent   = classDesc("wait_recent_seconds", "Quantiles of the recent waits until first delivered.", "quantile")
	classFlow     = classDesc("messages_total", "Messages by event: arrived, completed, dead_lettered, refused, evicted, expired.", "event")
	classRate     = classDesc("messages_per_second", "Messages per second in the last minute.", "event")
	classWaiting  = classDesc("messages_ready", "Ready messages.")
	classOldest   = classDesc("oldest_ready_seconds", "Age of the oldest ready message.")
	classState    = classDesc("objective_state", "State of the objective: 1 met, 2 at risk, 3 missed.")
	classShare    = classDesc("objective_share", "Share of messages that started in time.", "window")
	classBurn     = classDesc("objective_burn_rate", "Error budget burn rate: late messages divided by those allowed to be late.", "window")
	demandWorkers = prometheus.NewDesc("triagemq_demand_workers", "Workers that the objectives need now.", []string{"entity"}, nil)
	saturated     = prometheus.NewDesc("triagemq_queue_saturated", "Whether levels are served by weight because the backlog is too large: 1 or 0; only for policies with saturation.", []string{"entity"}, nil)
	operations    = prometheus.NewDesc("triagemq_operations_total", "Operations of clients.", []string{"entity", "operation"}, nil)
)

// classCollector collects the measurements of classes, for one scrape.
type classCollector struct {
	Sources
	ctx context.Context // of the request that scrapes
}

// Describe implements prometheus.Collector.
func (c *classCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{classWait, classService, classEndToEnd, classRecent, classFlow, classRate,
		classWaiting, classOldest, classState, classShare, classBurn, demandWorkers, saturated, operations} {
		to <- d
	}
}

// seriesOfClass is about how many series a class has.
const seriesOfClass = 3*(len(objective.Bounds)+3) + 24

// Collect implements prometheus.Collector.
func (c *classCollector) Collect(to chan<- prometheus.Metric) {
	series := 0
	for _, o := range c.Broker.AllObjectives(c.ctx) {
		if series += seriesOfClass * len(o.Classes); series > maxSeries {
			return // omitted, like the entities beyond
		}
		single(to, demandWorkers, float64(o.Demand(broker.DemandOptions{}).Value), o.Entity)
		if o.Saturated != nil {
			mode := 0.0
			if *o.Saturated {
				mode = 1
			}
			single(to, saturated, mode, o.Entity)
		}
		for _, op := range o.Operations {
			to <- prometheus.MustNewConstMetric(operations, prometheus.CounterValue, float64(op.Total), o.Entity, op.Operation)
		}
		for i := range o.Classes {
			tellClass(to, o.Entity, &o.Classes[i])
		}
	}
}

func single(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func tellClass(to chan<- prometheus.Metric, entity string, c *objective.ClassReport) {
	for d, s := range map[*prometheus.Desc]*objective.Summary{classWait: &c.Wait, classService: &c.Service, classEndToEnd: &c.EndToEnd} {
		buckets := make(map[float64]uint64, len(objective.Bounds))
		for i, bound := range objective.Bounds {
			buckets[bound] = s.Buckets[i]
		}
		to <- prometheus.MustNewConstHistogram(d, s.Total, s.Sum, buckets, entity, c.Name)
	}
	if c.Wait.Count > 0 {
		for q, v := range map[string]float64{"0.5": c.Wait.P50, "0.95": c.Wait.P95, "0.99": c.Wait.P99, "1": c.Wait.Max} {
			single(to, classRecent, v, entity, c.Name, q)
		}
	}
	for event, f := range map[string]*objective.Flow{
		"arrived": &c.Arrived, "completed": &c.Completed, "dead_lettered": &c.DeadLettered, "refused": &c.Refused, "evicted": &c.Evicted, "expired": &c.Expired,
	} {
		to <- prometheus.MustNewConstMetric(classFlow, prometheus.CounterValue, float64(f.Total), entity, c.Name, event)
		single(to, classRate, f.Minute, entity, c.Name, event)
	}
	single(to, classWaiting, float64(c.Waiting), entity, c.Name)
	single(to, classOldest, c.OldestAge, entity, c.Name)
	if o := c.Objective; o != nil {
		single(to, classState, float64(o.State), entity, c.Name)
		for window, b := range map[string]objective.Burn{"short": o.Short, "long": o.Long} {
			single(to, classShare, b.Share, entity, c.Name, window)
			single(to, classBurn, b.Rate, entity, c.Name, window)
		}
	}
}
