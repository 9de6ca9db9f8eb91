// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"errors"
	"testing"
)

// panics reports whether f does.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestChecksExistOnlyInTestBuilds(t *testing.T) {
	if got := panics(func() { Assert(false, "1: %d", 5) }); got != Enabled {
		t.Errorf("a broken Assert panics = %v, want %v", got, Enabled)
	}
	if got := panics(func() { Check(func() error { return errors.New("2") }) }); got != Enabled {
		t.Errorf("a broken Check panics = %v, want %v", got, Enabled)
	}
	if panics(func() { Assert(true, "1"); Check(func() error { return nil }) }) {
		t.Error("what holds must not panic")
	}
}
