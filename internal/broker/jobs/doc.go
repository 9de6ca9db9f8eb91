// SPDX-License-Identifier: Apache-2.0

// Package jobs runs the background work of a broker: forwarding, reclassification, idle
// deletion, alerts and measurement are jobs of one kind, and Runner runs them
// (runner.go).
//
// # Invariants
//
//  1. A job never runs beside itself.
//  2. A job that is woken while it runs, runs once more: a wake-up is never lost.
//  3. Each kind of jobs has a bounded number of workers of its own, so that a job that
//     blocks delays no job of another kind.
//
// # Concurrency
//
// All methods may be called from any goroutine, but Run is called once. It owns the
// workers and waits for them.
//
// # Not here
//
// What the jobs do: the packages below this one.
package jobs
