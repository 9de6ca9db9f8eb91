// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/triagemq/triagemq/internal/budget"
)

// The metrics of the memory for clients. Their names are part of the API and never
// change.
var (
	memoryLimit   = prometheus.NewDesc("triagemq_memory_limit_bytes", "Memory that the broker may use for clients.", nil, nil)
	memoryUsed    = prometheus.NewDesc("triagemq_memory_used_bytes", "Memory that the broker uses for clients, by part.", []string{"part"}, nil)
	storedLimit   = prometheus.NewDesc("triagemq_memory_stored_limit_bytes", "Memory for what clients have made durable.", nil, nil)
	messagesLimit = prometheus.NewDesc("triagemq_memory_messages_limit_bytes", "Memory for the messages that wait in all entities, part of that for what clients have made durable.", nil, nil)
	storedUsed    = prometheus.NewDesc("triagemq_memory_stored_bytes", "Memory that takes what clients have made durable, by part.", []string{"part"}, nil)
	memoryWaiting = prometheus.NewDesc("triagemq_memory_waiting", "Clients that are not read from until there is memory.", nil, nil)
)

// memoryCollector collects metrics of the memory for clients. It is a
// prometheus.Collector.
type memoryCollector struct{ usage func() budget.Usage }

// Describe implements prometheus.Collector.
func (c memoryCollector) Describe(to chan<- *prometheus.Desc) {
	to <- memoryLimit
	to <- memoryUsed
	to <- storedLimit
	to <- messagesLimit
	to <- storedUsed
	to <- memoryWaiting
}

// Collect implements prometheus.Collector.
func (c memoryCollector) Collect(to chan<- prometheus.Metric) {
	u := c.usage()
	single(to, memoryLimit, float64(u.Limit))
	single(to, memoryUsed, float64(u.Unauthenticated), "unauthenticated")
	single(to, memoryUsed, float64(u.Known), "authenticated")
	single(to, memoryUsed, float64(u.Unsynced), "unsynced")
	single(to, storedLimit, float64(u.StoredLimit))
	single(to, messagesLimit, float64(u.MessagesLimit))
	single(to, storedUsed, float64(u.StoredMessages), "messages")
	single(to, storedUsed, float64(u.StoredDefinitions), "definitions")
	single(to, storedUsed, float64(u.StoredGroups), "groups")
	single(to, memoryWaiting, float64(u.Waiting))
}

func single(to chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
