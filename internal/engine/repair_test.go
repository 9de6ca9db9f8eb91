// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/machine"
)

// TestSnapshotAfterALostSegment: a segment with live bodies is lost, and a repair has dropped
// it. The machines still refer to bodies in it, which cannot be read. That must not keep
// the engine from its next snapshot.
func TestSnapshotAfterALostSegment(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 40})
	id := r.define()
	put := func(i int) {
		r.do(func(h *counterHost) {
			body, err := h.tx.StoreOne(make([]byte, 6<<10))
			if err != nil {
				t.Fatal(err)
			}
			h.add(id, i, 1, body)
		}, nil)
		r.settle()
	}
	for i := range 8 {
		put(i)
	}
	lost := r.e.live.SegmentOf(r.h.counter(id).bodies[0])
	for i := 1; i < 8; i++ {
		put(i) // most of that segment is garbage
	}
	for r.e.claim.Segment(r.e.tail) < lost+4 {
		put(7)
	}
	r.e.Manual().BeginSnapshot()
	r.settle()
	want := r.h.state()

	disk := r.disk.CrashClone(1)
	if err := disk.Remove(fmt.Sprintf("%010d.seg", lost)); err != nil {
		t.Fatal(err)
	}
	if _, err := repair.Repair(disk, repair.DropDamaged); err != nil {
		t.Fatal(err)
	}
	r.disk, r.damaged = disk, true
	r.open()
	if got := r.h.state(); got != want {
		t.Fatalf("recovered\n%swant\n%s", got, want)
	}
	for range 2 {
		r.e.Manual().BeginSnapshot()
		r.settle() // fails if the engine does
		r.check()
		if r.e.live.Sparse(r.e.tail, 1<<40, nil)[lost] {
			t.Error("the next snapshot is to move bodies out of a segment that is lost")
		}
		want = r.h.state()
		r.crash(2)
		if got := r.h.state(); got != want {
			t.Fatalf("recovered\n%swant\n%s", got, want)
		}
	}
	read := []journal.Read{ReadOf(r.h.counter(id).bodies[0])}
	if r.e.Read(t.Context(), read); !errors.Is(read[0].Err, journal.ErrFreed) {
		t.Errorf("a body in the segment that is lost: %v, want %v", read[0].Err, journal.ErrFreed)
	}
	// When nothing refers to it any more, nothing is left of it.
	for i := range 8 {
		put(i)
	}
	r.check()
	machine.AllRefs(r.h.units[id].Machine, func(ref machine.Ref) {
		if r.e.live.SegmentOf(ref) == lost {
			t.Errorf("%v is still referred to", ref)
		}
	})
}
