// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
)

const (
	// maxSeries bounds what one scrape costs, here and at Prometheus: entities
	// beyond that have no metrics of their own.
	maxSeries = 50_000
)

// Sources is what is measured. Broker, Callers, Connections and Log are required.
type Sources struct {
	Broker  *broker.Broker
	Callers caller.Authorities
	Log     *slog.Logger
	// Connections returns how many clients are connected by AMQP.
	Connections func(context.Context) int
	// Memory returns the memory that peers use; nil is none.
	Memory func() budget.Usage
	// Disk returns the state of the store's disk; nil is none.
	Disk func() Disk
	// Refusals returns how many logins and tokens were rejected, by reason; nil is
	// none.
	Refusals func() map[string]uint64
}

// New returns the handler of /metrics. Metrics are collected for each request.
func New(p Sources) http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opts := promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelWarn)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		grant, err := p.Callers.Identify(r)
		if err == nil {
			err = caller.Require(grant, access.Listen, "")
		}
		if err != nil {
			refuse(w, err)
			return
		}
		// A collector gets no context, so each scrape has its own collector.
		scrape := prometheus.NewRegistry()
		scrape.MustRegister(&collector{Sources: p, ctx: r.Context()}, &classCollector{Sources: p, ctx: r.Context()}, &shardCollector{p}, &jobCollector{p}, poolCollector{p},
			&hubCollector{Sources: p, ctx: r.Context()})
		if p.Memory != nil {
			scrape.MustRegister(memoryCollector{p.Memory})
		}
		if p.Refusals != nil {
			scrape.MustRegister(loginCollector{p.Refusals})
		}
		if p.Disk != nil {
			scrape.MustRegister(diskCollector{p.Disk})
		}
		promhttp.HandlerFor(prometheus.Gatherers{scrape, process}, opts).ServeHTTP(w, r)
	})
}

// refuse answers in plain text, which Prometheus shows.
func refuse(w http.ResponseWriter, err error) {
	p, _ := problem.Of(err)
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="triagemq"`)
	}
	http.Error(w, p.Message, p.Status)
}

var entityLabels = []string{"entity", "kind"}

// gauge is a number that every entity has.
type gauge struct {
	desc *prometheus.Desc
	of   func(broker.Runtime) int64
}

func newGauge(name, help string, of func(broker.Runtime) int64) gauge {
	return gauge{prometheus.NewDesc("triagemq_"+name, help, entityLabels, nil), of}
}

// The metrics. Their names are part of the API: they do not change after the first release.
var (
	gauges = []gauge{
		newGauge("messages_active", "Messages that are ready or locked.", func(r broker.Runtime) int64 { return r.Active }),
		newGauge("messages_locked", "Messages locked by a consumer.", func(r broker.Runtime) int64 { return r.Locked }),
		newGauge("messages_scheduled", "Scheduled messages that are not due yet.", func(r broker.Runtime) int64 { return r.Scheduled }),
		newGauge("messages_deferred", "Deferred messages.", func(r broker.Runtime) int64 { return r.Deferred }),
		newGauge("messages_dead_lettered", "Dead letters.", func(r broker.Runtime) int64 { return r.Dead }),
		newGauge("messages_transfer_dead_lettered", "Messages that could not be forwarded.", func(r broker.Runtime) int64 { return r.TransferDead }),
		newGauge("bytes", "Size of all messages.", func(r broker.Runtime) int64 { return r.Bytes }),
		newGauge("receivers", "Consumers that are attached.", func(r broker.Runtime) int64 { return int64(r.Receivers) }),
	}
	levelReady = prometheus.NewDesc("triagemq_level_messages_ready", "Ready messages of a level.",
		append(entityLabels, "level"), nil)
	levelOldest = prometheus.NewDesc("triagemq_level_oldest_seconds", "How long the oldest ready message of a level has waited.",
		append(entityLabels, "level"), nil)
	unknownPriority = prometheus.NewDesc("triagemq_messages_unknown_priority_total",
		"Messages whose property Priority is neither a level nor the name of one, and that match no condition of a class.", entityLabels, nil)
	entityCount  = prometheus.NewDesc("triagemq_entities", "Entities by kind.", []string{"kind"}, nil)
	omittedCount = prometheus.NewDesc("triagemq_entities_omitted", "Entities without metrics of their own because there are too many.", nil, nil)
	connected    = prometheus.NewDesc("triagemq_connections", "Clients that are connected by AMQP.", nil, nil)
	unreadable   = prometheus.NewDesc("triagemq_messages_unreadable_total", "Messages that became dead letters because their bodies could not be read.", nil, nil)
)

// collector reads the broker for one scrape. It is a prometheus.Collector.
type collector struct {
	Sources
	ctx context.Context // of the request that scrapes
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, g := range gauges {
		to <- g.desc
	}
	for _, d := range []*prometheus.Desc{levelReady, levelOldest, unknownPriority, entityCount, omittedCount, connected, unreadable} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	now := c.Broker.Now()
	kinds := map[broker.Kind]int{broker.KindQueue: 0, broker.KindTopic: 0, broker.KindSubscription: 0, broker.KindHub: len(c.Broker.Hubs())}
	series, omitted := 0, 0
	for path, kind := range c.Broker.Paths() {
		kinds[kind]++
		if series >= maxSeries {
			omitted++
			continue
		}
		rt, err := c.Broker.Runtime(c.ctx, path)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			c.Log.Warn("cannot collect metrics", "entity", path, "err", err)
			return
		}
		series += len(gauges) + 1 + 2*len(rt.Levels)
		entityMetrics(to, path, kind, rt, now)
	}
	set := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	for kind, n := range kinds {
		set(entityCount, n, string(kind))
	}
	set(omittedCount, omitted)
	set(connected, c.Connections(c.ctx))
	to <- prometheus.MustNewConstMetric(unreadable, prometheus.CounterValue, float64(c.Broker.Unreadable()))
}

// entityMetrics sends what one entity has.
func entityMetrics(to chan<- prometheus.Metric, path string, k broker.Kind, rt broker.Runtime, now time.Time) {
	kind := string(k)
	for _, g := range gauges {
		to <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.of(rt)), path, kind)
	}
	to <- prometheus.MustNewConstMetric(unknownPriority, prometheus.CounterValue, float64(rt.UnknownPriorities), path, kind)
	for _, l := range rt.Levels {
		level := strconv.Itoa(int(l.Level))
		to <- prometheus.MustNewConstMetric(levelReady, prometheus.GaugeValue, float64(l.Ready), path, kind, level)
		if !l.Oldest.IsZero() {
			to <- prometheus.MustNewConstMetric(levelOldest, prometheus.GaugeValue, now.Sub(l.Oldest).Seconds(), path, kind, level)
		}
	}
}
