// SPDX-License-Identifier: Apache-2.0

// Package monitor admits messages to one queue and measures what becomes of them.
//
// A monitor is made by the shard from the definition of an entity, with the function
// that New returns, and runs on the shard's goroutine: where the messages are. It turns
// arrivals away as the policy of the queue asks (monitor.go), and keeps the figures
// behind objectives, alerts and the demand for workers (measure.go).
//
// # Invariants
//
//  1. What was let in and is not stored has used up no rate.
//  2. A monitor in which nothing happens, and that does not depend on the time, is not
//     due: an idle queue costs nothing.
//  3. Measurements survive a change of the policy by the names of its classes, and a
//     restart by notes.
//
// # Concurrency
//
// All methods run on the goroutine of the shard. The function that New returns may be
// called from any goroutine.
//
// # Not here
//
// Who is told of changes, and when queues are measured: package broker.
package monitor
