// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// A snapshot that moves no bodies leaves some in segments before its beginning. The
// journal must keep those segments: at once and after a crash every body that
// is referred to can be read.
func TestTruncateKeepsSegmentsWithLiveBodies(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 1 << 40})
	first := r.define()
	put := func(i int) {
		r.do(func(h *counterHost) {
			body, err := h.tx.StoreOne(make([]byte, 6<<10))
			if err != nil {
				t.Fatal(err)
			}
			h.add(first, i, 1, body)
		}, nil)
		r.settle()
	}
	for i := range 8 {
		put(i)
	}
	kept := r.e.claim.Segment(r.e.tail) // has one of the first bodies, or ends behind them
	for r.e.claim.Segment(r.e.tail) < kept+3 {
		put(0) // frees the body before
	}
	r.e.Manual().BeginSnapshot()
	r.settle()
	began := r.e.claim.Segment(r.e.snapshot.began)
	old := 0
	for _, ref := range r.h.counter(first).bodies {
		if r.e.live.SegmentOf(ref) < began {
			old++
		}
	}
	if r.e.Snapshots() != 1 || old < 7 {
		t.Fatalf("%d snapshots, %d bodies before the segment of the last; want 1 and 7", r.e.Snapshots(), old)
	}
	r.checkBodies()
	r.crash(1)
}

// With the option that bodies stay there is about one snapshot for each segment, none moves a
// body, and an engine with garbage that it cannot move comes to rest.
func TestBodiesStay(t *testing.T) {
	for _, stay := range []bool{true, false} {
		r := newRig(t, Options{SnapshotAfter: 1 << 18, BodiesStay: stay})
		first := r.define()
		var begun [8]machine.Ref
		const bodies = 400
		for i := range bodies {
			r.do(func(h *counterHost) {
				body, err := h.tx.StoreOne(make([]byte, 6<<10))
				if err != nil {
					t.Fatal(err)
				}
				index := 7
				if i < 3 { // they stay, and are all that lives in their segments
					index, begun[i] = i, body
				}
				h.add(first, index, 1, body)
			}, nil)
			r.settle()
		}
		moved := !slices.Equal(r.h.counter(first).bodies[:3], begun[:3])
		if moved == stay {
			t.Errorf("bodies stay %t: moved %t", stay, moved)
		}
		segments := uint64(bodies * 6 << 10 >> 16)
		if n := r.e.Snapshots(); stay && (n < segments/2 || n > 2*segments) {
			t.Errorf("%d snapshots for %d segments", n, segments)
		}
		for range 20 { // quiet
			r.now = r.now.Add(2 * quietAfter)
			r.settle()
		}
		before := r.e.Snapshots()
		for range 20 {
			r.now = r.now.Add(2 * quietAfter)
			r.settle()
		}
		if n := r.e.Snapshots(); n != before {
			t.Errorf("bodies stay %t: %d snapshots of an engine that is idle", stay, n-before)
		}
		r.crash(1)
	}
}
