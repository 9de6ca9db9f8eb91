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
	c := newCycler(b, cfg, levels)
	c.fill(waiting)
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		c.cycle()
	}
}

// BenchmarkSession enqueues a message to one of a thousand sessions, locks the
// next session, takes and completes the message and gives the session back.
func BenchmarkSession(b *testing.B) {
	for _, levels := range []int{1, 10} {
		for _, waiting := range []int{0, 100_000} {
			b.Run(fmt.Sprintf("levels=%d/waiting=%d", levels, waiting), func(b *testing.B) {
				benchSession(b, levels, waiting)
			})
		}
	}
}

func benchSession(b *testing.B, levels, waiting int) {
	q := New(Config{LockFor: time.Minute, Sessions: true}, 1)
	var out Effects
	now, n, seqs := time.Unix(1_700_000_000, 0), 0, make([]SeqNo, 1)
	enqueue := func() {
		n++
		a := Arrival{Body: Ref{At: uint64(n) * 300, Size: 256}, Level: Level(n % levels), Session: fmt.Sprint(n % 1000), InSession: true}
		if err := q.Enqueue(now, []Arrival{a}, seqs, &out); err != nil {
			b.Fatal(err)
		}
		out.Reset()
		now = now.Add(time.Microsecond)
	}
	for range waiting {
		enqueue()
	}
	runtime.GC()
	b.ReportAllocs()
	for b.Loop() {
		enqueue()
		l, _, _ := q.LockNextSession(now, TakeOptions{})
		d, ok := q.Take(now, TakeOptions{Session: l}, &out)
		if !ok {
			b.Fatal("no message")
		}
		if _, err := q.Complete(now, d.Token, &out); err != nil {
			b.Fatal(err)
		}
		q.ReleaseSession(now, l, &out)
		out.Reset()
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

// BenchmarkPause pauses a queue and lets it go on, with ten million messages that
// wait: it takes as long as with none.
func BenchmarkPause(b *testing.B) {
	for _, fair := range []bool{false, true} {
		for _, n := range []int{0, 10_000_000} {
			b.Run(fmt.Sprintf("fair=%t/waiting=%d", fair, n), func(b *testing.B) {
				q := New(Config{LockFor: time.Minute, Order: Order{Fair: fair}}, 1)
				fill(b, q, n)
				cfg, now := q.Config(), time.Unix(1_700_000_000, 0)
				var out Effects
				for b.Loop() {
					cfg.ReceivePaused = !cfg.ReceivePaused
					q.Configure(now, cfg, &out)
					out.Reset()
				}
			})
		}
	}
}
