// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// A machine that others use too is now fast and now slow, so two benchmarks one
// after the other compare little. Here all variants take turns in short rounds,
// and what is reported of each is a round that nothing disturbed, divided by the
// same of the first variant.

// A round is roundLen messages, fewer than a slice of the scheduler has time for.
// The warmUp messages before it are not measured: they bring back into the caches
// what the other variants have pushed out.
const (
	roundLen = 2000
	warmUp   = 1000
)

// variant is a queue at work that is compared with others.
type variant struct {
	name    string
	cycle   func()
	perLoop []float64 // nanoseconds for each message, one for each round
}

// compare runs all variants in turns and reports how much longer than the first
// each takes, and how long the first takes.
func compare(b *testing.B, vs []*variant) {
	b.Helper()
	for _, v := range vs {
		for range 10 * roundLen { // fills spare lists
			v.cycle()
		}
	}
	faultIn()
	for b.Loop() {
		for _, v := range vs {
			for range warmUp {
				v.cycle()
			}
			start := b.Elapsed()
			for range roundLen {
				v.cycle()
			}
			v.perLoop = append(v.perLoop, float64(b.Elapsed()-start)/roundLen)
		}
	}
	first := vs[0].undisturbed()
	b.ReportMetric(0, "ns/op") // a loop is a round of every variant
	b.ReportMetric(first, "ns/"+vs[0].name)
	for _, v := range vs[1:] {
		b.ReportMetric(v.undisturbed()/first, "x/"+v.name)
	}
}

// faultIn lets the kernel provide memory for what the variants will allocate.
// Otherwise those with a backlog would pay for their pages, which a broker that
// runs for a while has long done.
func faultIn() {
	const page = 4096
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += page {
		ballast[i] = 1
	}
	runtime.KeepAlive(ballast)
	runtime.GC()
}

// undisturbed returns the fifth percentile of the rounds.
func (v *variant) undisturbed() float64 {
	slices.Sort(v.perLoop)
	return v.perLoop[len(v.perLoop)/20]
}

// BenchmarkFlat shows that a cycle takes as long with many levels and a long
// queue as it does with one level and an empty queue.
func BenchmarkFlat(b *testing.B) {
	var vs []*variant
	for _, levels := range []int{1, 10, 256} {
		for _, waiting := range []int{0, 1_000_000} {
			c := newCycler(b, Config{LockFor: time.Minute}, levels)
			c.fill(waiting)
			vs = append(vs, &variant{name: fmt.Sprintf("levels=%d,waiting=%d", levels, waiting), cycle: c.cycle})
		}
	}
	compare(b, vs)
}

// BenchmarkDisciplines shows what each costs beside strict with the same backlog
// and the same levels.
func BenchmarkDisciplines(b *testing.B) {
	names := []string{"strict", "aging", "deadline", "weighted"}
	for _, levels := range []int{10, 256} {
		for _, waiting := range []int{0, 1000, 1_000_000} {
			b.Run(fmt.Sprintf("levels=%d/waiting=%d", levels, waiting), func(b *testing.B) {
				var vs []*variant
				for d, name := range names {
					c := newCycler(b, Config{LockFor: time.Minute, Order: benchOrder(Discipline(d))}, levels)
					c.fill(waiting)
					vs = append(vs, &variant{name: name, cycle: c.cycle})
				}
				compare(b, vs)
			})
		}
	}
}

func benchOrder(d Discipline) Order {
	o := Order{Discipline: d, AgingInterval: time.Minute, AgingMaxLevel: 255, Weight: make([]uint32, 256)}
	for l := range 256 {
		o.Objective = append(o.Objective, time.Duration(256-l)*time.Second)
		o.Weight[l] = uint32(l + 1)
	}
	return o
}

// BenchmarkLate shows what the discipline deadline costs beside strict when half of the
// levels are late, with the same backlog.
func BenchmarkLate(b *testing.B) {
	for _, levels := range []int{10, 256} {
		b.Run(fmt.Sprintf("levels=%d", levels), func(b *testing.B) {
			late := benchOrder(Deadline)
			for l := range levels / 2 {
				late.Objective[l] = time.Microsecond
			}
			var vs []*variant
			for _, v := range []struct {
				name  string
				order Order
			}{{"strict", Order{}}, {"in-time", benchOrder(Deadline)}, {"late", late}} {
				c := newCycler(b, Config{LockFor: time.Minute, Order: v.order}, levels)
				c.fill(100_000)
				vs = append(vs, &variant{name: v.name, cycle: c.cycle})
			}
			b.ReportAllocs()
			compare(b, vs)
		})
	}
}

// BenchmarkFair has 100,000 keys with a message each, beside as many messages
// with the same keys in a strict queue.
func BenchmarkFair(b *testing.B) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%06d", i)
	}
	var vs []*variant
	for _, name := range []string{"strict", "fair"} {
		c := newCycler(b, Config{LockFor: time.Minute, Order: Order{Fair: name == "fair"}}, 1)
		c.keys = names
		c.fill(len(names))
		vs = append(vs, &variant{name: name, cycle: c.cycle})
	}
	compare(b, vs)
}

// cycler drives one queue. Arrivals go to all levels in turn, and have every key
// in turn if there are keys.
type cycler struct {
	b      *testing.B
	q      *Queue
	out    Effects
	now    time.Time
	n      uint64
	levels uint64
	keys   []string
	as     [1]Arrival
	seqs   [1]SeqNo
}

func newCycler(b *testing.B, cfg Config, levels int) *cycler {
	return &cycler{b: b, q: New(cfg, 1), now: time.Unix(1_700_000_000, 0), levels: uint64(levels)}
}

func (c *cycler) enqueue() {
	c.n++
	c.now = c.now.Add(time.Microsecond)
	c.as[0] = Arrival{Body: Ref{At: c.n * 300, Size: 256}, Level: Level(c.n % c.levels)}
	if c.keys != nil {
		c.as[0].Key = c.keys[c.n%uint64(len(c.keys))]
	}
	if err := c.q.Enqueue(c.now, c.as[:], c.seqs[:], &c.out); err != nil {
		c.b.Fatal(err)
	}
}

func (c *cycler) fill(n int) {
	for range n {
		c.enqueue()
		c.out.Reset()
	}
}

// cycle enqueues, takes and completes one message, with its records.
func (c *cycler) cycle() {
	c.enqueue()
	d, ok := c.q.Take(c.now, TakeOptions{}, &c.out)
	if !ok {
		c.b.Fatal("nothing to take")
	}
	if _, err := c.q.Complete(c.now, d.Token, &c.out); err != nil {
		c.b.Fatal(err)
	}
	c.out.Records()
	c.out.Reset()
}
