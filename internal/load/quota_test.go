// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"time"
)

func TestQuota(t *testing.T) {
	q := &quota{total: 7, until: time.Second}
	for i, want := range []struct {
		first uint64
		n     int
	}{{0, 3}, {3, 3}, {6, 1}, {0, 0}, {0, 0}} {
		if first, n := q.take(0, 3); first != want.first || n != want.n {
			t.Errorf("call %d: %d from %d, want %d from %d", i, n, first, want.n, want.first)
		}
	}
	late := &quota{until: time.Second}
	if _, n := late.take(time.Second, 3); n != 0 {
		t.Errorf("after the time: %d, want none", n)
	}
	ended := &quota{}
	ended.end()
	if _, n := ended.take(0, 3); n != 0 {
		t.Errorf("after the end: %d, want none", n)
	}
}
