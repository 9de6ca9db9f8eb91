// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
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

// classes is the measurements of classes. It is a source.
type classes struct {
	Sources
	reports []broker.Objectives
}

// families implements source.
func (*classes) families() []*prometheus.Desc {
	return []*prometheus.Desc{classWait, classService, classEndToEnd, classRecent, classFlow, classRate,
		classWaiting, classOldest, classState, classShare, classBurn, demandWorkers, saturated, operations}
}

// seriesOfQueue is how many series a queue has besides those of its classes.
const seriesOfQueue = 8

// seriesOfClass is about how many series a class has.
const seriesOfClass = 3*(len(objective.Bounds)+3) + 24

// load implements source. What is beyond the limit of series is omitted, as are entities.
func (c *classes) load(ctx context.Context) (bytes int64) {
	const perEntity, perClass = 256, 2048
	series := 0
	for o := range c.Broker.AllObjectives(ctx) {
		if series += seriesOfQueue + seriesOfClass*len(o.Classes); series > limits.Series {
			break
		}
		c.reports = append(c.reports, o)
		bytes += perEntity + perClass*int64(len(o.Classes))
	}
	return bytes
}

// tell implements source.
func (c *classes) tell(to sink) {
	for i := range c.reports {
		o := &c.reports[i]
		if to.family == demandWorkers {
			to.gauge(demandWorkers, float64(o.Demand(broker.DemandOptions{}).Value), o.Entity)
		}
		if o.Saturated != nil {
			mode := 0.0
			if *o.Saturated {
				mode = 1
			}
			to.gauge(saturated, mode, o.Entity)
		}
		for _, op := range o.Operations {
			to.set(operations, prometheus.CounterValue, float64(op.Total), o.Entity, op.Operation)
		}
		for i := range o.Classes {
			tellClass(to, o.Entity, &o.Classes[i])
		}
	}
}

func tellClass(to sink, entity string, c *objective.ClassReport) {
	to.histogram(classWait, &c.Wait, entity, c.Name)
	to.histogram(classService, &c.Service, entity, c.Name)
	to.histogram(classEndToEnd, &c.EndToEnd, entity, c.Name)
	if c.Wait.Count > 0 {
		to.gauge(classRecent, c.Wait.P50, entity, c.Name, "0.5")
		to.gauge(classRecent, c.Wait.P95, entity, c.Name, "0.95")
		to.gauge(classRecent, c.Wait.P99, entity, c.Name, "0.99")
		to.gauge(classRecent, c.Wait.Max, entity, c.Name, "1")
	}
	for _, x := range []struct {
		event string
		flow  *objective.Flow
	}{
		{"arrived", &c.Arrived}, {"completed", &c.Completed}, {"dead_lettered", &c.DeadLettered}, {"refused", &c.Refused}, {"evicted", &c.Evicted}, {"expired", &c.Expired},
	} {
		to.set(classFlow, prometheus.CounterValue, float64(x.flow.Total), entity, c.Name, x.event)
		to.gauge(classRate, x.flow.Minute, entity, c.Name, x.event)
	}
	to.gauge(classWaiting, float64(c.Waiting), entity, c.Name)
	to.gauge(classOldest, c.OldestAge, entity, c.Name)
	if o := c.Objective; o != nil {
		to.gauge(classState, float64(o.State), entity, c.Name)
		to.gauge(classShare, o.Short.Share, entity, c.Name, "short")
		to.gauge(classShare, o.Long.Share, entity, c.Name, "long")
		to.gauge(classBurn, o.Short.Rate, entity, c.Name, "short")
		to.gauge(classBurn, o.Long.Rate, entity, c.Name, "long")
	}
}

func (s sink) histogram(d *prometheus.Desc, of *objective.Summary, labels ...string) {
	if d != s.family {
		return
	}
	buckets := make(map[float64]uint64, len(objective.Bounds))
	for i, bound := range objective.Bounds {
		buckets[bound] = of.Buckets[i]
	}
	s.to <- prometheus.MustNewConstHistogram(d, of.Total, of.Sum, buckets, labels...)
}
