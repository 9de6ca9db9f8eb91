// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// The metrics of background jobs. Their names are part of the API and never change.
var (
	jobLabels  = []string{"job"}
	jobRuns    = prometheus.NewDesc("triagemq_job_runs_total", "Runs of background jobs.", jobLabels, nil)
	jobErrors  = prometheus.NewDesc("triagemq_job_errors_total", "Runs of background jobs that failed; the log says why.", jobLabels, nil)
	jobWaiting = prometheus.NewDesc("triagemq_job_waiting", "Background jobs that wait for a worker.", jobLabels, nil)
	jobLast    = prometheus.NewDesc("triagemq_job_last_seconds", "How long the last run took.", jobLabels, nil)
)

// jobCollector tells how the background jobs are doing. It is a prometheus.Collector.
type jobCollector struct{ Sources }

// Describe tells the names.
func (c *jobCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobRuns, jobErrors, jobWaiting, jobLast} {
		to <- d
	}
}

// Collect tells the numbers.
func (c *jobCollector) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.Broker.JobStats() {
		to <- prometheus.MustNewConstMetric(jobRuns, prometheus.CounterValue, float64(s.Runs), s.Name)
		to <- prometheus.MustNewConstMetric(jobErrors, prometheus.CounterValue, float64(s.Errors), s.Name)
		to <- prometheus.MustNewConstMetric(jobWaiting, prometheus.GaugeValue, float64(s.Waiting), s.Name)
		to <- prometheus.MustNewConstMetric(jobLast, prometheus.GaugeValue, s.Last.Seconds(), s.Name)
	}
}
