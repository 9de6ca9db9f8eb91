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

func TestQuotaKeepsItsRate(t *testing.T) {
	q := &quota{rate: 1000, from: time.Second}
	if wait := q.wait(time.Second); wait != 0 {
		t.Errorf("the first message waits for %v", wait)
	}
	q.take(time.Second, 500)
	if wait := q.wait(1200 * time.Millisecond); wait != 300*time.Millisecond {
		t.Errorf("after 500 messages in 200 ms the next one waits for %v, want 300ms", wait)
	}
	if wait := q.wait(2 * time.Second); wait != 0 {
		t.Errorf("a sender that is late waits for %v", wait)
	}
	if wait := (&quota{}).wait(0); wait != 0 {
		t.Errorf("without a rate it waits for %v", wait)
	}
}
