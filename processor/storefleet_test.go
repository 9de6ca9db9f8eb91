// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// storeBed is a fleet in store mode.
type storeBed struct {
	t     *testing.T
	hub   *fakeHub
	store *faultyStore
	all   []*instance

	mu    sync.Mutex
	seen  map[string]int // how often each event was handled; guarded by mu
	takes int            // partitions that got another owner; guarded by mu
	last  map[string]string
	told  int // of ErrStore; guarded by mu
}

func newStoreBed(t *testing.T, parts int, skew time.Duration) *storeBed {
	b := &storeBed{t: t, hub: newFakeHub(parts), seen: map[string]int{}, last: map[string]string{}}
	b.store = &faultyStore{CheckpointStore: NewMemoryStore(), rng: rand.New(rand.NewPCG(1, 1)), skew: skew, saved: func(int, client.SeqNo) {}, steady: true}
	return b
}

func (b *storeBed) start(s Strategy) *instance {
	i := &instance{name: fmt.Sprint("instance", len(b.all)), host: b.hub.host(), ended: make(chan error, 1)}
	i.Processor = &Processor{
		Hub: "hub", ID: i.name, Store: b.store, Strategy: s, link: i.host, Log: slog.New(slog.DiscardHandler),
		OnError: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if errors.Is(err, ErrStore) {
				b.told++
			}
		},
		Handle: func(_ context.Context, p *Partition, events []*client.Received) error {
			if err := i.host.alive(); err != nil {
				return err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.last[p.ID()] != i.name {
				b.last[p.ID()] = i.name
				b.takes++
			}
			for _, e := range events {
				b.seen[string(e.Body)]++
			}
			return nil
		},
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	i.cancel = cancel
	go func() { i.ended <- i.Run(ctx) }()
	b.all = append(b.all, i)
	return i
}

// run publishes an event to each partition each second.
func (b *storeBed) run(d time.Duration) {
	for range int(d / time.Second) {
		for part := range b.hub.parts {
			b.hub.publish(part, 1)
		}
		elapse(time.Second)
	}
	synctest.Wait()
}

// counts returns how many partitions each instance owns, ascending.
func (b *storeBed) counts() []int {
	var out []int
	for _, i := range b.all {
		if !i.host.isDead() && i.live.Load() != nil {
			out = append(out, len(i.Status().Partitions))
		}
	}
	slices.Sort(out)
	return out
}

func (b *storeBed) moves() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.takes
	b.takes = 0
	return n
}

func (b *storeBed) stop() {
	for _, i := range b.all {
		i.cancel()
	}
	for _, i := range b.all {
		if err := <-i.ended; err != nil && !i.host.isDead() {
			b.t.Errorf("%s: %v", i.name, err)
		}
	}
	for part := range b.hub.parts {
		for n := range b.hub.size(part) {
			if key := fmt.Sprint(part, "/", n); b.seen[key] == 0 {
				b.t.Errorf("event %s was not handled", key)
			}
		}
	}
}

func TestStoreFleetsBalanceWhateverTheClocksSay(t *testing.T) {
	for _, strategy := range []Strategy{Balanced, Greedy} {
		for _, skew := range []time.Duration{0, -7 * time.Minute, 7 * time.Minute} {
			t.Run(fmt.Sprint(strategy, skew), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newStoreBed(t, 8, skew)
					for range 3 {
						b.start(strategy)
					}
					b.run(4 * time.Minute)
					equal(t, "partitions of each", b.counts(), []int{2, 3, 3})
					b.moves()
					b.run(10 * time.Minute)
					equal(t, "moves of a fleet that is settled", b.moves(), 0)
					dead := b.all[0]
					dead.host.crash()
					dead.cancel()
					b.run(3 * time.Minute)
					equal(t, "partitions of each after a crash", b.counts(), []int{4, 4})
					if n := b.moves(); n < 2 || n > 4 {
						t.Errorf("%d moves after a crash, want 2 to 4", n)
					}
					b.stop()
				})
			})
		}
	}
}

func TestMoreInstancesThanPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStoreBed(t, 2, 0)
		for range 5 {
			b.start(Greedy)
		}
		b.run(3 * time.Minute)
		equal(t, "partitions of each", b.counts(), []int{0, 0, 0, 1, 1})
		b.moves()
		b.run(3 * time.Minute)
		equal(t, "moves of a fleet that is settled", b.moves(), 0)
		b.stop()
	})
}

func TestPartitionsAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStoreBed(t, 2, 0)
		b.start(Greedy)
		b.start(Greedy)
		b.run(time.Minute)
		b.hub.grow(6)
		b.run(time.Minute)
		equal(t, "partitions of each", b.counts(), []int{3, 3})
		b.stop()
	})
}

func TestAStoreThatIsDownForAMinuteIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStoreBed(t, 6, 0)
		b.start(Greedy)
		b.start(Greedy)
		b.run(time.Minute)
		b.moves()
		b.store.fail(70 * time.Second)
		b.run(60 * time.Second)
		equal(t, "moves while the store is down", b.moves(), 0)
		b.mu.Lock()
		told, handled := b.told, len(b.seen)
		b.mu.Unlock()
		if told == 0 {
			t.Error("OnError was not told")
		}
		if want := 6 * 115; handled < want {
			t.Errorf("%d events were handled, want %d: handlers go on without the store", handled, want)
		}
		b.run(2 * time.Minute)
		equal(t, "moves when it is back", b.moves(), 0)
		equal(t, "partitions of each", b.counts(), []int{3, 3})
		for _, i := range b.all {
			for _, p := range i.Status().Partitions {
				if p.Checkpoint < p.Handled-2 {
					t.Errorf("partition %s: checkpoint %d, handled %d", p.ID, p.Checkpoint, p.Handled)
				}
			}
		}
		b.stop()
	})
}

func TestALostAnswerToAClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStoreBed(t, 4, 0)
		b.store.loseAnswers = 3
		b.start(Greedy)
		b.run(2 * time.Minute)
		equal(t, "partitions of each", b.counts(), []int{4})
		b.stop()
	})
}

func TestARestartWithTheSameIDGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newStoreBed(t, 4, 0)
		first := b.start(Greedy)
		b.run(30 * time.Second)
		first.host.crash()
		first.cancel()
		<-first.ended
		b.all = nil
		b.start(Greedy) // it is named instance0 too
		b.run(5 * time.Second)
		equal(t, "partitions of each", b.counts(), []int{4})
		b.stop()
	})
}

func TestClaimsOfATable(t *testing.T) {
	records := func(owner string, n int) []Ownership {
		out := make([]Ownership, n)
		for i := range out {
			out[i] = Ownership{Partition: fmt.Sprint(owner, i), Owner: owner}
		}
		return out
	}
	for _, c := range []struct {
		name     string
		own      int
		free     int
		others   []int
		balanced int // claims, without renewals
		greedy   int
	}{
		{"alone", 0, 8, nil, 1, 8},
		{"a newcomer", 0, 0, []int{8}, 1, 4},
		{"the ninth of 128", 0, 0, []int{16, 16, 16, 16, 16, 16, 16, 16}, 1, 14},
		{"one more than the least", 2, 0, []int{3, 3}, 0, 0},
		{"the least, and one free", 2, 1, []int{3, 2}, 1, 1},
		{"the most, and one free", 3, 1, []int{2, 2}, 0, 0},
		{"more instances than partitions", 0, 0, []int{1, 1}, 0, 0},
	} {
		table := func() *table {
			out := &table{self: "me", owners: map[string][]Ownership{}, free: records("", c.free), parts: c.own + c.free}
			if c.own > 0 {
				out.owners["me"] = records("me", c.own)
			}
			for i, n := range c.others {
				name := fmt.Sprint("other", i, "-")
				out.owners[name] = records(name, n)
				out.parts += n
			}
			return out
		}
		equal(t, c.name+", balanced", len(table().claims(Balanced))-c.own, c.balanced)
		equal(t, c.name+", greedy", len(table().claims(Greedy))-c.own, c.greedy)
	}
}

func TestGreedyTakesFromNobodyMoreThanTheSurplus(t *testing.T) {
	for range 100 {
		t1 := &table{self: "me", parts: 30, owners: map[string][]Ownership{}}
		for _, owner := range []string{"a", "b"} {
			for i := range 15 {
				t1.owners[owner] = append(t1.owners[owner], Ownership{Partition: fmt.Sprint(owner, i), Owner: owner})
			}
		}
		from := map[byte]int{}
		for _, o := range t1.wanted() {
			from[o.Partition[0]]++
		}
		if from['a'] != 5 || from['b'] != 5 {
			t.Fatalf("taken %d and %d, want 5 of each", from['a'], from['b'])
		}
	}
}
