// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/notify"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	benchAppenders = 512
	benchRecord    = 256
)

// start runs w until the benchmark ends.
func start(b testing.TB, w *WAL) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }() // owned by the benchmark, which waits for it
	b.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.Errorf("run: %v", err)
		}
		if err := w.Close(); err != nil {
			b.Errorf("close: %v", err)
		}
	})
}

// latch lets appenders wait until a position is durable.
type latch struct {
	mu      sync.Mutex
	cond    *sync.Cond
	durable journal.Position // guarded by mu
	rounds  atomic.Int64
}

func newLatch() *latch {
	l := new(latch)
	l.cond = sync.NewCond(&l.mu)
	return l
}

func (l *latch) notify(s journal.Status) {
	l.mu.Lock()
	l.durable = s.Durable
	l.mu.Unlock()
	l.rounds.Add(1)
	l.cond.Broadcast()
}

func (l *latch) position() journal.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durable
}

func (l *latch) wait(at journal.Position) {
	l.mu.Lock()
	for l.durable < at {
		l.cond.Wait()
	}
	l.mu.Unlock()
}

// BenchmarkAppendSynced measures records made durable by 512 appenders, each of
// which waits for its own before the next. Beside it runs the least that could
// be done: the same appenders and wake-ups around a bare write and fdatasync of
// the same bytes. The ratio of the two is reported.
func BenchmarkAppendSynced(b *testing.B) {
	var bare, ours float64
	b.Run("bare", func(b *testing.B) { bare = benchBare(b) })
	b.Run("wal", func(b *testing.B) {
		ours = benchWAL(b)
		b.ReportMetric(100*ours/bare, "%-of-bare")
	})
}

// warm calls once from 512 goroutines, many times.
func warm(once func()) {
	var wg sync.WaitGroup
	for range benchAppenders {
		wg.Go(func() {
			for range 200 {
				once()
			}
		})
	}
	wg.Wait()
}

// appenders calls once, from 512 goroutines, b.N times in all, and returns how
// many there were in a second.
func appenders(b *testing.B, once func()) float64 {
	left := atomic.Int64{}
	left.Store(int64(b.N))
	b.SetBytes(benchRecord)
	b.ResetTimer()
	begin := time.Now()
	var wg sync.WaitGroup
	for range benchAppenders {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				once()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	rate := float64(b.N) / time.Since(begin).Seconds()
	b.ReportMetric(rate, "records/s")
	return rate
}

func benchWAL(b *testing.B) float64 {
	w, err := Open(vfs.OS(b.TempDir()), Options{})
	if err != nil {
		b.Fatal(err)
	}
	start(b, w)
	c, _, err := journal.ClaimOne(ctx, w, 1)
	if err != nil {
		b.Fatal(err)
	}
	l := newLatch()
	w.Watch(c, l.notify)
	record := make([]byte, benchRecord)
	segment := atomic.Uint64{} // up to which all was truncated
	once := func() {
		var at [1]journal.Position
		// One claim from many goroutines: a WAL does not mind, only the order
		// is then anyone's guess.
		if err := w.Append(c, &journal.Group{Records: [][]byte{record}, At: at[:]}); err != nil {
			b.Error(err)
			return
		}
		l.wait(at[0])
		if was, now := segment.Load(), c.Segment(at[0]); now > was && segment.CompareAndSwap(was, now) {
			if err := w.Truncate(ctx, c, journal.Retain{From: at[0]}); err != nil {
				b.Error(err)
			}
		}
	}
	for c.Segment(l.position()) < 6 { // the files have their full size, and are used again
		warm(once)
	}
	l.rounds.Store(0)
	rate := appenders(b, once)
	b.ReportMetric(float64(b.N)/float64(l.rounds.Load()), "records/sync")
	return rate
}

// benchBare writes into one file, made beforehand and used in turns, so that it
// pays for no new space at all.
func benchBare(b *testing.B) float64 {
	const size = 64 << 20
	fsys := vfs.OS(b.TempDir())
	p, err := store.MakeSpare(fsys, "bare", size)
	if err != nil {
		b.Fatal(err)
	}
	defer p.File.Close()

	var mu sync.Mutex
	var pending, spare []byte // guarded by mu
	var next journal.Position // guarded by mu
	l := newLatch()
	wake := notify.New()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		off := 0
		for {
			select {
			case <-wake:
			case <-stop:
				return
			}
			mu.Lock()
			buf, upTo := pending, next
			pending, spare = spare[:0], buf
			mu.Unlock()
			if off+len(buf) > size {
				off = 0
			}
			if _, err := p.File.WriteAt(buf, int64(off)); err != nil {
				b.Error(err)
			}
			if err := p.File.Sync(); err != nil {
				b.Error(err)
			}
			off += len(buf)
			l.notify(journal.Status{Durable: upTo})
		}
	})
	record := make([]byte, benchRecord+format.FrameHeader)
	rate := appenders(b, func() {
		mu.Lock()
		pending = append(pending, record...)
		next++
		at := next
		mu.Unlock()
		wake.Notify()
		l.wait(at)
	})
	close(stop)
	wg.Wait()
	b.ReportMetric(float64(b.N)/float64(l.rounds.Load()), "records/sync")
	return rate
}

// BenchmarkAppendCPU measures what Append alone costs its caller; commits go to
// memory.
func BenchmarkAppendCPU(b *testing.B) {
	w, err := Open(vfs.NewMem(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	c, _, err := journal.ClaimOne(ctx, w, 1)
	if err != nil {
		b.Fatal(err)
	}
	records, at := [][]byte{make([]byte, 300)}, make([]journal.Position, 1)
	from := journal.Position(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := w.Append(c, &journal.Group{Records: records, At: at}); err != nil {
			b.Fatal(err)
		}
		if i%4096 == 0 {
			b.StopTimer()
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
			if at[0]/journal.Position(c.SegmentSize) != from {
				from = at[0] / journal.Position(c.SegmentSize)
				if err := w.Truncate(ctx, c, journal.Retain{From: at[0]}); err != nil {
					b.Fatal(err)
				}
			}
			b.StartTimer()
		}
	}
}

func BenchmarkRead(b *testing.B) {
	w, err := Open(vfs.OS(b.TempDir()), Options{})
	if err != nil {
		b.Fatal(err)
	}
	start(b, w)
	c, _, err := journal.ClaimOne(ctx, w, 1)
	if err != nil {
		b.Fatal(err)
	}
	at := make([]journal.Position, 1000)
	records := make([][]byte, len(at))
	for i := range records {
		records[i] = make([]byte, benchRecord)
	}
	if err := w.Append(c, &journal.Group{Records: records, At: at}); err != nil {
		b.Fatal(err)
	}
	if err := w.flush(); err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if buf, err = journal.ReadOne(ctx, w, at[i%len(at)], buf[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay measures a claim that reads 256 MB of records of 256 bytes,
// half of them another shard's.
func BenchmarkReplay(b *testing.B) {
	fsys := vfs.OS(b.TempDir())
	w, err := Open(fsys, Options{})
	if err != nil {
		b.Fatal(err)
	}
	start(b, w)
	records, at := make([][]byte, 1000), make([]journal.Position, 1000)
	for i := range records {
		records[i] = make([]byte, benchRecord)
	}
	const total = 256 << 20
	for size, shard := 0, journal.Shard(1); size < total; size, shard = size+benchRecord*len(records), 3-shard {
		c, _, err := journal.ClaimOne(ctx, w, shard)
		if err != nil {
			b.Fatal(err)
		}
		for range 8 {
			if err := w.Append(c, &journal.Group{Records: records, At: at}); err != nil {
				b.Fatal(err)
			}
			size += benchRecord * len(records)
		}
	}
	b.SetBytes(total)
	for b.Loop() {
		_, seq, err := journal.ClaimOne(ctx, w, 1)
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range seq {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkOpenEmpty measures the first start of a store.
func BenchmarkOpenEmpty(b *testing.B) {
	for b.Loop() {
		w, err := Open(vfs.OS(b.TempDir()), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
