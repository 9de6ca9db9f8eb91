// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// TestStartedKeysSurviveAConfigurationInsideASnapshot changes the settings after
// each of the steps that a snapshot takes (B11).
func TestStartedKeysSurviveAConfigurationInsideASnapshot(t *testing.T) {
	changes := map[string]func(*Config){
		"nothing":    func(*Config) {},
		"the limit":  func(c *Config) { c.MaxFailures = 9 },
		"the shares": func(c *Config) { c.Order.DefaultShare.Cap = 5 },
		"aging": func(c *Config) {
			c.Order.Discipline, c.Order.AgingInterval, c.Order.AgingMaxLevel = Aging, time.Hour, 9
		},
	}
	for name, change := range changes {
		for at := range 40 {
			cfg := Config{LockFor: time.Hour, Order: Order{Fair: true, LevelOrder: FinishFirst}}
			q := New(cfg, 1)
			var out Effects
			for i := range SeqNo(10) { // each key has two messages, one of which is taken
				send(t, q, epochStart, Arrival{Key: fmt.Sprint("k", i)}, 2)
				if _, err := q.TakeSeq(epochStart, 2*i+1, TakeOptions{ReceiveAndDelete: true}, &out); err != nil {
					t.Fatal(err)
				}
			}
			for _, i := range []SeqNo{0, 1, 2, 3, 5, 7} { // these are finished
				if err := q.Remove(epochStart, 2*i+2, &out); err != nil {
					t.Fatal(err)
				}
			}
			out.Reset()
			done := false
			for step, snap := 0, q.Snapshot(); !done; step++ {
				if step == at {
					change(&cfg)
					q.Configure(epochStart, cfg, &out)
				}
				q.Reorder(2)
				done = snap.Step(items(1), nil, &out.Effects)
			}
			again := New(Config{}, 2)
			records := out.Records()
			if at == 0 {
				records = records[1:] // it was configured before the snapshot
			}
			for _, rec := range records {
				if err := again.Replay(rec, new(machine.Effects)); err != nil {
					t.Fatalf("%s before step %d: %v", name, at, err)
				}
			}
			if got, want := again.Started(), q.Started(); !slices.Equal(got, want) || len(want) == 0 {
				t.Fatalf("%s before step %d: started %q, want %q", name, at, got, want)
			}
		}
	}
}

// A key may be started after the order was changed and before the new arrangement has
// reached its messages. The next one that is started still comes after it.
func TestKeyStartedWhileReorderingKeepsItsTurn(t *testing.T) {
	cfg := Config{LockFor: time.Hour, Order: Order{Fair: true, LevelOrder: FinishFirst}}
	q := New(cfg, 1)
	var out Effects
	for i := range 3 {
		send(t, q, epochStart, Arrival{Key: fmt.Sprint("k", i)}, 2)
	}
	start := func(seq SeqNo) {
		if _, err := q.TakeSeq(epochStart, seq, TakeOptions{}, &out); err != nil {
			t.Fatal(err)
		}
	}
	cfg.Order.Discipline, cfg.Order.AgingInterval, cfg.Order.AgingMaxLevel = Aging, time.Hour, 9
	q.Configure(epochStart, cfg, &out)
	start(5) // k2
	start(3) // k1
	for q.Reorder(1) {
	}
	start(1) // k0
	if got, want := q.Started(), []string{"k2", "k1", "k0"}; !slices.Equal(got, want) {
		t.Errorf("started %q, want %q", got, want)
	}
}
