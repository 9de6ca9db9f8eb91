// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// What was admitted counts until the machines were asked that changed with it, also while in
// each step more of them change than a step asks.
func TestReserveDoesNotGrowWhileManyMachinesChange(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 64 << 10, SnapshotStep: 100})
	ids := make([]uint64, 3*lookUnits)
	r.do(func(h *counterHost) {
		for i := range ids {
			ids[i] = h.define()
			if i%100 == 0 {
				h.tx.CommitIfFull()
			}
		}
	}, nil)
	r.settle()
	publish := func() {
		r.do(func(h *counterHost) {
			if err := h.tx.Reserve(Needs{Records: 16 << 10, Items: len(ids)}); err != nil {
				t.Fatal(err)
			}
			var ref [1]machine.Ref
			if err := h.tx.Store(journal.Ordinary, [][]byte{[]byte("event")}, ref[:]); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				h.add(id, 0, 1, ref[0])
				h.tx.CommitIfFull()
			}
		}, nil)
		r.step()
		r.work()
		r.commit()
	}
	reserved := func() uint64 { return r.e.journal.Usage(r.e.claim).Reserved }
	for range 20 {
		publish()
	}
	few := reserved()
	for range 200 {
		publish()
	}
	if many := reserved(); many > 2*few {
		t.Errorf("%d bytes are reserved after 20 messages, %d after 220, which have replaced them", few, many)
	}
}
