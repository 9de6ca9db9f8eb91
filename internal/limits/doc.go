// SPDX-License-Identifier: Apache-2.0

// Package limits is the table of what one peer may ask for: how long names are, how
// large properties, batches, rules, definitions, frames and headers, how many of each.
//
// Every limit on incoming requests is a constant here, so that each has one
// value for all protocols. The memory that a connection may use is not here:
// package budget counts it.
//
// # Promise
//
// A request beyond a limit is rejected as a whole, with an [*Error] that says
// which limit it is, what was sent and what is allowed. Nothing of the request
// is applied. Stored data stays readable if a limit is lowered: limits are
// checked for incoming requests, not at recovery.
//
// docs/guide/limits.md is the same table for users; a test keeps the two in step.
//
// # Concurrency
//
// Everything here is a constant or a pure function.
package limits
