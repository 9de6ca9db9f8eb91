// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/queue"
)

// A3: one step of a snapshot visits no more messages, and writes no more bytes,
// than it may, bodies that it moves included.
func TestSnapshotStepsAreBounded(t *testing.T) {
	const step = 50
	r := newRig(t, Options{SnapshotAfter: 64 << 10, SnapshotStep: step, CacheBytes: 1})
	id := r.define("q", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	for i := range 2000 { // most die, so that the rest is moved
		r.send(id, 4, fmt.Sprintf("%0500d", i))
		r.settle()
		if i%10 != 0 {
			k.c.SetDeliveryLimit(k.c.deliveredCount + 1)
			r.settle()
			k.settle(Complete, k.got[len(k.got)-1])
		}
	}
	steps, moved := 0, 0
	for n := range 4000 {
		r.send(id, 4, fmt.Sprintf("%0500d", n))
		before, movedBefore := r.s.view().ForSnapshots, r.s.view().Moved
		active := r.s.view().Snapshotting
		r.step()
		r.sync()
		if !active {
			continue
		}
		steps++
		moved += max(0, r.s.view().Moved-movedBefore)
		if wrote := r.s.view().ForSnapshots - before; wrote > stepBytes+4096 {
			t.Fatalf("a step wrote %d bytes", wrote)
		}
		if items := r.s.view().Moved - movedBefore; items > step {
			t.Fatalf("a step moved %d bodies, want at most %d", items, step)
		}
	}
	if steps < 20 || moved < 10 {
		t.Fatalf("%d steps, %d bodies moved: the test shows nothing", steps, moved)
	}
}
