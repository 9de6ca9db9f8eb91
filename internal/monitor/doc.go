// SPDX-License-Identifier: Apache-2.0

// Package monitor admits messages to one queue and measures how they are served.
//
// The shard creates a monitor from the definition of an entity, with the function that
// New returns, and calls it on its goroutine. The monitor rejects arrivals by the policy
// of the queue (monitor.go), and has the figures behind objectives, alerts and the demand
// for workers (measure.go).
//
// # Invariants
//
//  1. A message that was admitted and is not stored has used up no rate.
//  2. A monitor without events, whose result does not depend on the time, is not due: an
//     idle queue costs nothing.
//  3. Measurements survive a change of the policy by the names of its classes, and a
//     restart by the stored measurements.
//
// # Concurrency
//
// All methods run on the goroutine of the shard. The function that New returns may be
// called from any goroutine.
//
// # Not here
//
// Where alerts are sent, and when queues are measured: package broker.
package monitor
