// SPDX-License-Identifier: Apache-2.0

// Package invariant holds checks that exist only in test builds, those with the
// build tag invariants. In other builds its functions are empty and cost nothing.
//
// A package numbers its invariants in its doc.go; a check names the number, so
// that the panic leads to the sentence.
//
// # Concurrency
//
// All functions may be called from any goroutine.
//
// # Not here
//
// Input that may be wrong (a peer's frame, a file) is checked in every build and
// answered with an error. Only what can be wrong through a bug of ours belongs
// here.
package invariant
