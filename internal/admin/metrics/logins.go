// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// The name and label are part of the API and never change.
var loginsRefused = prometheus.NewDesc("triagemq_logins_refused_total", "Logins and tokens that were rejected, by AMQP and HTTP.", []string{"reason"}, nil)

// loginCollector counts failed authentications. It is a prometheus.Collector.
type loginCollector struct{ refusals func() map[string]uint64 }

// Describe implements prometheus.Collector.
func (c loginCollector) Describe(to chan<- *prometheus.Desc) { to <- loginsRefused }

// Collect implements prometheus.Collector.
func (c loginCollector) Collect(to chan<- prometheus.Metric) {
	for reason, n := range c.refusals() {
		to <- prometheus.MustNewConstMetric(loginsRefused, prometheus.CounterValue, float64(n), reason)
	}
}
