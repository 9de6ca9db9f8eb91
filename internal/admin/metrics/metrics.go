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

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

// Sources is what is measured. Broker, Callers, Connections, ChargeMemory and Log are required.
type Sources struct {
	Broker  *broker.Broker
	Callers caller.Authorities
	Log     *slog.Logger
	// Connections returns how many clients are connected by AMQP.
	Connections func() int
	// ChargeMemory charges memory until the handler of a request returns, and reports whether
	// there was space for it.
	ChargeMemory func(*http.Request, int64) bool
	// Memory returns the memory that peers use; nil is none.
	Memory func() budget.Usage
	// Disk returns the state of the store's disk; nil is none.
	Disk func() Disk
	// Refusals returns how many logins and tokens were rejected, by reason; nil is
	// none.
	Refusals func() map[string]uint64
}

// handler answers requests for the metrics.
type handler struct {
	Sources
	few   prometheus.Gatherer // what there is once
	turns chan struct{}       // a semaphore for what takes memory
}

// New returns the handler of /metrics. Metrics are collected for each request.
func New(p Sources) http.Handler {
	process, few := prometheus.NewRegistry(), prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	few.MustRegister(&shardCollector{p}, &jobCollector{p})
	if p.Memory != nil {
		few.MustRegister(memoryCollector{p.Memory})
	}
	if p.Refusals != nil {
		few.MustRegister(loginCollector{p.Refusals})
	}
	if p.Disk != nil {
		few.MustRegister(diskCollector{p.Disk})
	}
	return &handler{Sources: p, few: prometheus.Gatherers{few, process}, turns: make(chan struct{}, scrapers)}
}

// ServeHTTP answers one request. An answer that has begun ends at an error.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	grant, err := h.Callers.Identify(r)
	if err == nil {
		err = caller.Require(grant, access.Listen, "")
	}
	if err != nil {
		refuse(w, err)
		return
	}
	s := &scrape{handler: h, r: r, w: w}
	err = s.serve([]source{&entities{Sources: h.Sources}, &classes{Sources: h.Sources}, &pools{Sources: h.Sources}, &hubs{Sources: h.Sources}}, h.few)
	if err != nil && s.encoder == nil {
		refuse(w, err)
	}
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
		newGauge("messages_active", "Messages that are ready, locked or retrying.", func(r broker.Runtime) int64 { return r.Active }),
		newGauge("messages_locked", "Messages locked by a consumer.", func(r broker.Runtime) int64 { return r.Locked }),
		newGauge("messages_retrying", "Messages that have failed and wait for their time.", func(r broker.Runtime) int64 { return r.Retrying }),
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

// entities is the queues, topics and subscriptions. It is a source.
type entities struct {
	Sources
	now     time.Time
	rows    []entityRow
	kinds   map[broker.Kind]int
	omitted int
}

// entityRow is what is kept of one entity.
type entityRow struct {
	path, kind string
	runtime    broker.Runtime
}

// families implements source.
func (e *entities) families() []*prometheus.Desc {
	ds := []*prometheus.Desc{levelReady, levelOldest, unknownPriority, entityCount, omittedCount, connected, unreadable}
	for _, g := range gauges {
		ds = append(ds, g.desc)
	}
	return ds
}

// load implements source.
func (e *entities) load(ctx context.Context) (bytes int64) {
	const perRow, perLevel = 384, 48
	e.now = e.Broker.Now()
	e.kinds = map[broker.Kind]int{broker.KindQueue: 0, broker.KindTopic: 0, broker.KindSubscription: 0, broker.KindHub: len(e.Broker.Hubs())}
	series := 0
	for path, kind := range e.Broker.Paths() {
		e.kinds[kind]++
		if series >= limits.Series {
			e.omitted++
			continue
		}
		rt, err := e.Broker.Runtime(ctx, path)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			e.Log.Warn("cannot collect metrics", "entity", path, "err", err)
			break
		}
		series += len(gauges) + 1 + 2*len(rt.Levels)
		e.rows = append(e.rows, entityRow{path, string(kind), rt})
		bytes += perRow + perLevel*int64(len(rt.Levels))
	}
	return bytes
}

// tell implements source.
func (e *entities) tell(to sink) {
	for i := range e.rows {
		e.rows[i].tell(to, e.now)
	}
	for kind, n := range e.kinds {
		to.gauge(entityCount, float64(n), string(kind))
	}
	to.gauge(omittedCount, float64(e.omitted))
	to.gauge(connected, float64(e.Connections()))
	to.set(unreadable, prometheus.CounterValue, float64(e.Broker.Unreadable()))
}

// tell tells what one entity has.
func (row *entityRow) tell(to sink, now time.Time) {
	for _, g := range gauges {
		to.gauge(g.desc, float64(g.of(row.runtime)), row.path, row.kind)
	}
	to.set(unknownPriority, prometheus.CounterValue, float64(row.runtime.UnknownPriorities), row.path, row.kind)
	for _, l := range row.runtime.Levels {
		level := strconv.Itoa(int(l.Level))
		to.gauge(levelReady, float64(l.Ready), row.path, row.kind, level)
		if !l.Oldest.IsZero() {
			to.gauge(levelOldest, now.Sub(l.Oldest).Seconds(), row.path, row.kind, level)
		}
	}
}
