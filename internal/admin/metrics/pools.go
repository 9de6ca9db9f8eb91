// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/broker"
)

func poolDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("triagemq_pool_"+name, help, []string{"pool", "source"}, nil)
}

// poolMetric is a number that every pool has.
type poolMetric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*broker.Pool) float64
}

// poolMetrics are the metrics of worker pools. Their names are part of the API: they do
// not change after the first release. The broker bounds the number of pools.
var poolMetrics = []poolMetric{
	{poolDesc("processes", "Processes of a pool that announce themselves."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 { return float64(len(p.Instances)) }},
	{poolDesc("paused", "1 if a pool is ordered to pause."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 {
			if p.Paused {
				return 1
			}
			return 0
		}},
	{poolDesc("slots", "Handlers that a pool can run at a time."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 { return float64(p.Slots) }},
	{poolDesc("busy", "Handlers that run."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 { return float64(p.Busy) }},
	{poolDesc("suspended", "Handlers that wait in place for a slot."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 { return float64(p.Suspended) }},
	{poolDesc("retrying", "Messages that a pool keeps until it retries them."), prometheus.GaugeValue,
		func(p *broker.Pool) float64 { return float64(p.Retrying) }},
	{poolDesc("completed_total", "Messages that a pool has completed."), prometheus.CounterValue,
		func(p *broker.Pool) float64 { return float64(p.Completed) }},
	{poolDesc("failed_total", "Messages whose handler has failed."), prometheus.CounterValue,
		func(p *broker.Pool) float64 { return float64(p.Failed) }},
	{poolDesc("dead_lettered_total", "Messages that a pool has made dead letters."), prometheus.CounterValue,
		func(p *broker.Pool) float64 { return float64(p.DeadLettered) }},
	{poolDesc("preempted_total", "Tasks that made way for a message of a higher level."), prometheus.CounterValue,
		func(p *broker.Pool) float64 { return float64(p.Preempted) }},
}

// pools is the worker pools. It is a source.
type pools struct {
	Sources
	list []broker.Pool
}

// families implements source.
func (*pools) families() (ds []*prometheus.Desc) {
	for _, m := range poolMetrics {
		ds = append(ds, m.desc)
	}
	return ds
}

// load implements source.
func (p *pools) load(context.Context) (bytes int64) {
	const perPool, perInstance = 256, 192
	p.list = p.Broker.Pools()
	for i := range p.list {
		bytes += perPool + perInstance*int64(len(p.list[i].Instances))
	}
	return bytes
}

// tell implements source.
func (p *pools) tell(to sink) {
	for i := range p.list {
		for _, m := range poolMetrics {
			to.set(m.desc, m.kind, m.of(&p.list[i]), p.list[i].Name, p.list[i].Source)
		}
	}
}
