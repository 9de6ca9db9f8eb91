// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"
)

// To drop many units takes no more time for each because many others have changed.
func TestDropOfManyUnitsAmongMany(t *testing.T) {
	const many = 60_000
	r := newRig(t, Options{})
	us := make([]*Unit, many)
	for i := range us {
		us[i] = &Unit{ID: uint64(1_000_000 + i), Machine: &counter{}}
		r.e.add(us[i])
		r.e.resize(us[i])
	}
	began := time.Now()
	r.e.forget(us[:many/2])
	if took := time.Since(began); took > 300*time.Millisecond { // 3 ms are usual
		t.Errorf("%d of %d units are dropped in %v", many/2, many, took)
	}
	if n := len(r.e.reserved.resized); n < many/2 || n > many/2+10 {
		t.Errorf("%d units are to be asked for their size, want %d", n, many/2)
	}
}
