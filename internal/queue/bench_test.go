// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// BenchmarkCycle enqueues, takes and completes one message, with its records.
func BenchmarkCycle(b *testing.B) {
	for _, levels := range []int{1, 10, 256} {
		for _, waiting := range []int{0, 1_000_000} {
			b.Run(fmt.Sprintf("levels=%d/waiting=%d", levels, waiting), func(b *testing.B) {
				benchCycle(b, Config{LockFor: time.Minute}, levels, waiting)
			})
		}
	}
}

func benchCycle(b *testing.B, cfg Config, levels, waiting int) {
	q := New(cfg, 1)
	var out Effects
	now := time.Unix(1_700_000_000, 0)
	as, seqs := make([]Arrival, 1), make([]SeqNo, 1)
	n := uint64(0)
	enqueue := func() {
		n++
		now = now.Add(time.Microsecond)
		as[0] = Arrival{Body: Ref{At: n * 300, Size: 256}, Level: Level(n % uint64(levels))}
		if err := q.Enqueue(now, as, seqs, &out); err != nil {
			b.Fatal(err)
		}
	}
	for range waiting {
		enqueue()
		out.Reset()
	}
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		enqueue()
		d, ok := q.Take(now, Want{}, &out)
		if !ok {
			b.Fatal("nothing to take")
		}
		if _, err := q.Complete(now, d.Token, &out); err != nil {
			b.Fatal(err)
		}
		out.Records()
		out.Reset()
	}
}

// BenchmarkDisciplines shows what they cost beside strict, at ten and 256 levels.
func BenchmarkDisciplines(b *testing.B) {
	names := []string{"strict", "aging", "deadline", "weighted"}
	for d, name := range names {
		for _, levels := range []int{10, 256} {
			b.Run(fmt.Sprintf("%s/levels=%d", name, levels), func(b *testing.B) {
				order := Order{Discipline: Discipline(d), Every: time.Minute, UpTo: 255, Weight: make([]uint32, 256)}
				for l := range 256 {
					order.Objective = append(order.Objective, time.Duration(256-l)*time.Second)
					order.Weight[l] = uint32(l + 1)
				}
				benchCycle(b, Config{LockFor: time.Minute, Order: order}, levels, 100_000)
			})
		}
	}
}

// BenchmarkFair has 100,000 keys with messages, the number that strict handles
// next to it without keys.
func BenchmarkFair(b *testing.B) {
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%t", fair), func(b *testing.B) {
			names := make([]string, 100_000)
			for i := range names {
				names[i] = fmt.Sprintf("tenant-%06d", i)
			}
			q := New(Config{LockFor: time.Minute, Order: Order{Fair: fair}}, 1)
			var out Effects
			as, seqs := make([]Arrival, 1), make([]SeqNo, 1)
			n := 0
			enqueue := func() {
				as[0] = Arrival{Body: Ref{At: uint64(n), Size: 256}, Key: names[n%len(names)]}
				if err := q.Enqueue(epochStart, as, seqs, &out); err != nil {
					b.Fatal(err)
				}
				n++
			}
			for range len(names) {
				enqueue()
				out.Reset()
			}
			b.ReportAllocs()
			for b.Loop() {
				enqueue()
				d, _ := q.Take(epochStart, Want{}, &out)
				if _, err := q.Complete(epochStart, d.Token, &out); err != nil {
					b.Fatal(err)
				}
				out.Records()
				out.Reset()
			}
		})
	}
}

// BenchmarkMemory prints the bytes that a waiting message takes.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("waiting=%d", n), func(b *testing.B) {
			for b.Loop() {
				before := heapInUse()
				q := New(Config{LockFor: time.Minute, TTL: time.Hour}, 1)
				fill(b, q, n)
				b.ReportMetric(float64(heapInUse()-before)/float64(n), "B/message")
				runtime.KeepAlive(q)
			}
		})
	}
}

func fill(b *testing.B, q *Queue, n int) {
	b.Helper()
	var out Effects
	as, seqs := make([]Arrival, 1000), make([]SeqNo, 1000)
	now := time.Unix(1_700_000_000, 0)
	for i := 0; i < n; i += len(as) {
		for j := range as {
			as[j] = Arrival{Body: Ref{At: uint64(i+j) * 300, Size: 256}, Level: Level((i + j) % 10)}
		}
		if err := q.Enqueue(now, as, seqs, &out); err != nil {
			b.Fatal(err)
		}
		out.Reset()
		now = now.Add(time.Millisecond)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
