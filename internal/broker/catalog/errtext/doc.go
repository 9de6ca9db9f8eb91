// SPDX-License-Identifier: Apache-2.0

// Package errtext returns the texts of errors for users.
//
// # Invariants
//
// A text has no package name of this repository at its beginning. What a user wrote, such
// as the name of an entity, stays as it is.
//
// # Concurrency
//
// Text may be called from any goroutine.
package errtext
