// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/triagemq/triagemq/internal/queue"
)

// Nothing refers to a queue that was dropped, once its bodies are freed: not the lists of
// what a step has to look at, nor the engine's.
func TestDroppedQueuesLeaveMemory(t *testing.T) {
	r := newRig(t, Options{})
	kept := r.define("kept", minute)
	var ids []ID
	var left []weak.Pointer[queue.Queue]
	for i := range 20 {
		id := r.define(fmt.Sprint("q", i), minute)
		ids = append(ids, id)
		r.sendMany(id, 300)
		for _, hq := range r.s.entities[id].parts {
			left = append(left, weak.Make(hq.q))
		}
	}
	if err := r.trySend(text("x"), queue.Arrival{}, ids...); err != nil {
		t.Fatal(err)
	}
	r.settle()
	for _, id := range ids {
		r.s.Drop([]ID{id}, func(error) {})
		r.settle()
	}
	r.send(kept, 4, "x")
	r.settle()
	for range 3 {
		runtime.GC()
	}
	n := 0
	defer runtime.KeepAlive(r)
	for _, w := range left {
		if w.Value() != nil {
			n++
		}
	}
	if n > 0 {
		t.Errorf("%d of %d queues are still in memory", n, len(left))
	}
}
