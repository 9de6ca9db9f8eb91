// SPDX-License-Identifier: Apache-2.0

// Package retention decides what of a history is kept, and when a snapshot is worth it.
//
// It counts and computes only: it appends nothing, reads no clock and has no goroutine.
// Package engine tells it what was written and which bodies are referred to.
//
// # Invariants
//
//  1. Written and Live of a Liveness are the sums over its segments.
//  2. A segment without live bodies is forgotten only when Keep leaves it out.
//
// # Files
//
//	liveness.go  bytes written and referred to in each segment; which to keep or to empty
//	policy.go    when a snapshot is taken
package retention
