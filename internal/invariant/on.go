// SPDX-License-Identifier: Apache-2.0

//go:build invariants

package invariant

import "fmt"

// Enabled is true in test builds. Work that only feeds a check goes inside
// if invariant.Enabled, which the compiler removes from the others.
const Enabled = true

// Assert panics in test builds unless ok holds.
func Assert(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant: " + fmt.Sprintf(format, args...))
	}
}

// Check runs check in test builds and panics with its error. It is for checks
// that cost something.
func Check(check func() error) {
	if err := check(); err != nil {
		panic(fmt.Errorf("invariant: %w", err))
	}
}
