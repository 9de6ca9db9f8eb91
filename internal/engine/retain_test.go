// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

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
