// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// loaded is queues with messages of one kind.
type loaded struct {
	qs  []*Queue
	out Effects
	now time.Time
	n   int
}

func (l *loaded) charged() (n int64) {
	for _, q := range l.qs {
		n += q.Memory()
	}
	return n
}

// add stores a message in queue i.
func (l *loaded) add(t *testing.T, i int, a Arrival) (growth int64) {
	t.Helper()
	l.n++
	a.Body = Ref{At: uint64(l.n), Size: 10}
	as, seqs := []Arrival{a}, make([]SeqNo, 1)
	growth = l.qs[i].Growth(as)
	if most := l.qs[i].MostGrowth(as); most < growth {
		t.Fatalf("growth of at most %d, and of %d", most, growth)
	}
	if err := l.qs[i].Enqueue(l.now, as, seqs, &l.out); err != nil {
		t.Fatal(err)
	}
	l.out.Reset()
	return growth
}

// What a queue says it takes is what the heap grows by, whatever the messages need
// besides their entries; and what is left when they have gone is little.
func TestMemoryIsWhatMessagesTake(t *testing.T) {
	const n = 200_000
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fair := Config{Order: Order{Fair: true}}
	plain := func(i int) Arrival { return Arrival{Level: Level(i % 3)} }
	tests := []struct {
		name    string
		cfg     Config
		queues  int
		n       int
		arrival func(i int) Arrival
		after   func(t *testing.T, l *loaded)
	}{
		{name: "plain", arrival: plain},
		{name: "time to live", arrival: func(i int) Arrival { return Arrival{TTL: time.Hour + time.Duration(i%977)*time.Second} }},
		{name: "scheduled", arrival: func(i int) Arrival { return Arrival{NotBefore: start.Add(time.Hour + time.Duration(i)*time.Second)} }},
		{name: "session each", n: 50_000, cfg: Config{Sessions: true}, arrival: func(i int) Arrival {
			return Arrival{Session: fmt.Sprintf("session-%08d", i), InSession: true}
		}},
		{name: "few sessions", cfg: Config{Sessions: true}, arrival: func(i int) Arrival {
			return Arrival{Session: fmt.Sprintf("session-%08d", i%100), InSession: true}
		}},
		{name: "fair key each", n: 50_000, cfg: fair, arrival: func(i int) Arrival { return Arrival{Key: fmt.Sprintf("key-%08d", i)} }},
		{name: "few fair keys", cfg: fair, arrival: func(i int) Arrival { return Arrival{Key: fmt.Sprintf("key-%08d", i%100)} }},
		{name: "fair keys in all levels", cfg: fair, arrival: func(i int) Arrival {
			return Arrival{Key: fmt.Sprintf("key-%08d", i/256), Level: Level(i % 256)}
		}},
		{name: "sessions in all levels", cfg: Config{Sessions: true}, arrival: func(i int) Arrival {
			return Arrival{Session: fmt.Sprintf("session-%08d", i/256), InSession: true, Level: Level(i % 256)}
		}},
		{name: "fair keys in sessions in all levels", cfg: Config{Sessions: true, Order: Order{Fair: true}}, arrival: func(i int) Arrival {
			return Arrival{Session: fmt.Sprintf("session-%08d", i/256), InSession: true, Level: Level(i % 256), Key: "k"}
		}},
		{name: "keys that are not used", n: 50_000, arrival: func(i int) Arrival { return Arrival{Key: fmt.Sprintf("key-%08d", i)} }},
		{name: "duplicate detection", cfg: Config{DuplicateWindow: time.Hour}, arrival: func(i int) Arrival {
			return Arrival{MessageID: fmt.Sprintf("id-%08d", i)}
		}},
		{name: "dead letters with reasons", cfg: Config{DeadLetterQueue: true}, arrival: func(i int) Arrival {
			return Arrival{Reason: Ref{At: uint64(i) + 1, Size: 20}}
		}},
		{name: "replies", arrival: func(i int) Arrival { return Arrival{OrderTime: start.Add(-time.Hour)} }},
		{name: "one in each queue", queues: 10_000, n: 10_000, arrival: plain},
		{name: "ten in each queue", queues: 10_000, n: 100_000, arrival: plain},
		{name: "deferred", arrival: plain, after: func(t *testing.T, l *loaded) {
			for range n {
				d := l.take(t)
				if _, err := l.qs[0].Defer(l.now, d.Token, &l.out); err != nil {
					t.Fatal(err)
				}
				l.out.Reset()
			}
		}},
		{name: "locked", arrival: plain, after: func(t *testing.T, l *loaded) {
			for range n {
				l.take(t)
			}
		}},
		{name: "abandoned", arrival: plain, after: func(t *testing.T, l *loaded) {
			var tokens []Token
			for range n {
				tokens = append(tokens, l.take(t).Token)
			}
			for i := range tokens {
				if _, err := l.qs[0].Abandon(l.now, tokens[(i*7919)%len(tokens)], &l.out); err != nil {
					t.Fatal(err)
				}
				l.out.Reset()
			}
		}},
		{name: "one is left in each level of fair keys", cfg: fair, arrival: func(i int) Arrival {
			return Arrival{Key: fmt.Sprintf("key-%08d", i/2000), Level: Level(i / 20 % 100)}
		}, after: func(t *testing.T, l *loaded) {
			for i := range n {
				if i%20 == 0 {
					continue
				}
				if err := l.qs[0].Remove(l.now, SeqNo(i+1), &l.out); err != nil {
					t.Fatal(err)
				}
				l.out.Reset()
			}
		}},
		{name: "one in a hundred is left", arrival: plain, after: func(t *testing.T, l *loaded) {
			for i := range n {
				if d := l.take(t); i%100 != 0 {
					if _, err := l.qs[0].Complete(l.now, d.Token, &l.out); err != nil {
						t.Fatal(err)
					}
				}
				l.out.Reset()
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.n == 0 {
				tt.n = n
			}
			if tt.cfg.LockFor == 0 {
				tt.cfg.LockFor = time.Minute
			}
			l := &loaded{now: start}
			for range max(tt.queues, 1) {
				l.qs = append(l.qs, New(tt.cfg, 1))
			}
			before, charged := heapInUse(), l.charged()
			estimated := int64(0)
			for i := range tt.n {
				estimated += l.add(t, i%len(l.qs), tt.arrival(i))
			}
			if grown := l.charged() - charged; tt.after == nil && (estimated < grown*9/10 || estimated > grown*2+100_000) {
				t.Errorf("the growth was estimated as %d, and was %d", estimated, grown)
			}
			if tt.after != nil {
				tt.after(t, l)
			}
			grown, took := l.charged()-charged, int64(heapInUse()-before)
			t.Logf("%d bytes a message are charged, %d taken, estimated %d", grown/int64(tt.n), took/int64(tt.n), estimated/int64(tt.n))
			if grown < took*9/10 || grown > took*2 {
				t.Errorf("%d bytes are charged, and %d taken", grown, took)
			}
			runtime.KeepAlive(l)
		})
	}
}

func (l *loaded) take(t *testing.T) Delivery {
	t.Helper()
	d, ok := l.qs[0].Take(l.now, TakeOptions{}, &l.out)
	if !ok {
		t.Fatal("no message is ready")
	}
	l.out.Reset()
	return d
}

// What a large backlog took is given back when it has gone, and most of it when little is
// left: otherwise an empty queue would be charged for it.
func TestMemoryIsGivenBack(t *testing.T) {
	const n, few = 50_000, 20
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name    string
		cfg     Config
		arrival func(i int) Arrival
		left    int64 // bytes that may be left when few messages are
	}{
		{"plain", Config{}, func(int) Arrival { return Arrival{} }, 400_000},
		{"time to live", Config{}, func(int) Arrival { return Arrival{TTL: time.Hour} }, 400_000},
		{"scheduled", Config{}, func(i int) Arrival { return Arrival{NotBefore: start.Add(time.Duration(n-i) * time.Millisecond)} }, 400_000},
		{"fair keys", Config{Order: Order{Fair: true}}, func(i int) Arrival { return Arrival{Key: fmt.Sprintf("key-%08d", i)} }, n * 150},
		{"sessions", Config{Sessions: true}, func(i int) Arrival {
			return Arrival{Session: fmt.Sprintf("session-%08d", i), InSession: true}
		}, n * 200},
		{"message ids", Config{DuplicateWindow: time.Minute}, func(i int) Arrival { return Arrival{MessageID: fmt.Sprintf("id-%08d", i)} }, 400_000},
		{"reasons", Config{DeadLetterQueue: true}, func(i int) Arrival { return Arrival{Reason: Ref{At: uint64(i) + 1, Size: 20}} }, 400_000},
		{"replies", Config{}, func(int) Arrival { return Arrival{OrderTime: start.Add(-time.Hour)} }, 400_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.LockFor = time.Hour
			l := &loaded{now: start, qs: []*Queue{New(tt.cfg, 1)}}
			q := l.qs[0]
			for i := range n {
				l.add(t, 0, tt.arrival(i))
			}
			full := q.Memory()
			remove := func(to int64) {
				for seq := SeqNo(1); q.Counts().Total() > to; seq++ {
					if _, ok := q.Lookup(seq); !ok {
						continue
					}
					if err := q.Remove(l.now, seq, &l.out); err != nil {
						t.Fatal(err)
					}
					l.out.Reset()
				}
			}
			forget := func() {
				l.now = l.now.Add(time.Hour)
				for range 2 * n / 500 {
					q.Tick(l.now, &l.out)
					l.out.Reset()
				}
			}
			remove(few)
			if tt.cfg.DuplicateWindow > 0 {
				forget()
			}
			some := q.Memory()
			remove(0)
			none := q.Memory()
			t.Logf("%d bytes of %d messages, %d of %d, %d of none", full, n, some, few, none)
			if some > tt.left || none > 150_000 {
				t.Errorf("%d bytes of %d are left, and %d when the queue is empty", some, full, none)
			}
			if err := q.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The numbers of keys are given back when no key is left; what still refers to one, such as
// a time at which it may be served again, finds none.
func TestKeysWithRatesAreGivenBack(t *testing.T) {
	const keys = 1500
	cfg := Config{LockFor: time.Hour, Order: Order{Fair: true, DefaultShare: Share{Rate: 1, Burst: 3}}}
	for seed := range uint64(2) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		l := &loaded{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), qs: []*Queue{New(cfg, 1)}}
		q := l.qs[0]
		for range 3 {
			for range 4 * keys {
				l.add(t, 0, Arrival{Key: fmt.Sprint("key ", rnd.IntN(keys))})
				if d, ok := q.Take(l.now, TakeOptions{}, &l.out); ok {
					if _, err := q.Complete(l.now, d.Token, &l.out); err != nil {
						t.Fatal(err)
					}
				}
				l.now = l.now.Add(time.Duration(rnd.IntN(1000)) * time.Microsecond)
				q.Tick(l.now, &l.out)
				l.out.Reset()
			}
			for seq := SeqNo(1); q.Counts().Total() > 0; seq++ {
				_ = q.Remove(l.now, seq, &l.out) // some have gone
				l.out.Reset()
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				l.now = l.now.Add(time.Second)
				q.Tick(l.now, &l.out)
				l.out.Reset()
			}
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
			if n := q.Memory(); n > 150_000 {
				t.Errorf("%d bytes are left", n)
			}
		}
	}
}
