// SPDX-License-Identifier: Apache-2.0

// Package measure measures queues and reports on their objectives.
//
// Measuring (measure.go) is a job. It lets the shards measure the queues with events,
// raises the changes as alerts, and stores the measurements at intervals and at a stop.
// Objectives has the measurements of one queue; demand.go computes the number of workers
// from them.
//
// # Invariants
//
//  1. A change of state raises one alert, whether the job or a report has found it.
//  2. A stop stores the measurements of all queues, unless a shard does not answer.
//
// # Concurrency
//
// All methods may be called from any goroutine, but those of the job only by its runner.
//
// # Not here
//
// What is measured: package monitor. The formulas: package objective.
package measure
