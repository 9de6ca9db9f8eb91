// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
)

// Orders are given only by a caller that still has the right to.
func TestPoolOrdersAreGuarded(t *testing.T) {
	b := brokertest.Start(t)
	if _, err := b.AnnouncePool(t.Context(), broker.PoolReport{Name: "low", Instance: "1", Sources: []string{"q"}}); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("the right is gone")
	ctx := broker.Guard(t.Context(), func() error { return gone })
	if _, err := b.PausePools(ctx, "low", "", true); !errors.Is(err, gone) {
		t.Errorf("pause: %v, want %v", err, gone)
	}
	if _, err := b.ResizePools(ctx, "low", "", 3); !errors.Is(err, gone) {
		t.Errorf("resize: %v, want %v", err, gone)
	}
	if p := b.Pools()[0]; p.Paused || p.OrderedSlots != 0 {
		t.Errorf("pool %+v has orders that nobody could give", p)
	}
}

// What one report costs: a pool sends two in a second.
func BenchmarkAnnouncePool(b *testing.B) {
	br := brokertest.Start(b)
	if _, err := br.CreateQueue(b.Context(), entity.Queue{Name: "q"}); err != nil {
		b.Fatal(err)
	}
	r := broker.PoolReport{Name: "low", Instance: "1", Sources: []string{"q"}, Slots: 4}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := br.AnnouncePool(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
