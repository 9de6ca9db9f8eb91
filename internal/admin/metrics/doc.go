// SPDX-License-Identifier: Apache-2.0

// Package metrics is /metrics: what the broker measures, in the format of Prometheus.
//
// Every request collects anew, from what the broker counts anyway: nothing is kept for
// metrics alone. The number of series is bounded; entities beyond the bound are counted
// and have none of their own. One family after the other is made and written.
//
// Names and labels are part of the API. Each file has the metrics of one source.
package metrics
