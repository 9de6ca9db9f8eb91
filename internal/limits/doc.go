// SPDX-License-Identifier: Apache-2.0

// Package limits is the table of what one peer may ask for: how long names are, how
// large properties, batches, rules, definitions, frames and headers, how many of each.
//
// Every limit that is enforced where something comes in is a constant here, so that
// each has one value, whichever door the request takes. What a
// whole connection may make the broker hold is not here: package budget counts it.
//
// # Promise
//
// What is beyond a limit is refused as a whole, with an [*Error] that says which
// limit it is, what was sent and what is allowed. Nothing of the request is applied.
// What a store already has stays readable whatever a limit is lowered to: limits are
// checked at the door, not at recovery.
//
// docs/guide/limits.md is the same table for users; a test keeps the two in step.
//
// # Concurrency
//
// Everything here is a constant or a pure function.
package limits
