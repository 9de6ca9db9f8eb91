// SPDX-License-Identifier: Apache-2.0

//go:build !invariants

package invariant

// Enabled is true in test builds. Work that only feeds a check goes inside
// if invariant.Enabled, which the compiler removes from the others.
const Enabled = false

// Assert panics in test builds unless ok holds.
func Assert(ok bool, format string, args ...any) {}

// Check runs check in test builds and panics with its error. It is for checks
// that cost something.
func Check(check func() error) {}
