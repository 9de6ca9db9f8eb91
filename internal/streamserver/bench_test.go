// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

// The load that the speed of a hub is measured with: 16 partitions, 100 events of 256
// bytes in a batch.
const (
	benchPartitions = 16
	benchEvents     = 100
	benchBytes      = 256 * benchEvents
	benchWindow     = 32 // batches of a partition that are not acknowledged
)

// produce appends n batches to a partition and waits for all of them.
func produce(b *testing.B, h *Hub, partition, n int) {
	raw := make([]byte, benchBytes)
	free := make(chan *Append, benchWindow)
	for range benchWindow {
		a := &Append{Partition: partition, Count: benchEvents, Raw: raw}
		a.Done = func(_ stream.SeqNo, err error) {
			if err != nil {
				b.Error(err)
			}
			free <- a
		}
		free <- a
	}
	for range n {
		h.Append(<-free)
	}
	for range benchWindow {
		<-free
	}
}

func report(b *testing.B, batches int) {
	b.SetBytes(benchBytes)
	b.ReportMetric(float64(batches)*benchEvents/b.Elapsed().Seconds(), "events/s")
	b.ReportAllocs()
}

// BenchmarkAppend appends batches to 16 partitions through a journal on a real disk.
func BenchmarkAppend(b *testing.B) {
	h := start(b, vfs.OS(b.TempDir()), Settings{Partitions: benchPartitions}, wal.Options{})
	b.ResetTimer()
	var wg sync.WaitGroup
	for p := range benchPartitions {
		wg.Go(func() { produce(b, h, p, b.N/benchPartitions+1) })
	}
	wg.Wait()
	report(b, b.N)
}

// BenchmarkAppendAndRead also has a reader at the end of each partition.
func BenchmarkAppendAndRead(b *testing.B) {
	h := start(b, vfs.OS(b.TempDir()), Settings{Partitions: benchPartitions}, wal.Options{})
	n := b.N/benchPartitions + 1
	b.ResetTimer()
	var wg sync.WaitGroup
	for p := range benchPartitions {
		wg.Go(func() { produce(b, h, p, n) })
		wg.Go(func() { consume(b, h, p, n) })
	}
	wg.Wait()
	report(b, b.N)
}

// consume reads n batches of a partition.
func consume(b *testing.B, h *Hub, partition, n int) {
	r, err := h.OpenReader(b.Context(), ReaderOptions{Partition: partition})
	if err != nil {
		b.Error(err)
		return
	}
	defer r.Close()
	for n > 0 {
		got, err := r.Next(b.Context(), 1<<20)
		if err != nil {
			b.Error(err)
			return
		}
		n -= len(got)
	}
}

// BenchmarkRead reads what is on disk, one partition after the other.
func BenchmarkRead(b *testing.B) {
	h := start(b, vfs.OS(b.TempDir()), Settings{Partitions: benchPartitions}, wal.Options{})
	var wg sync.WaitGroup
	n := b.N/benchPartitions + 1
	for p := range benchPartitions {
		wg.Go(func() { produce(b, h, p, n) })
	}
	wg.Wait()
	b.ResetTimer()
	for p := range benchPartitions {
		consume(b, h, p, n)
	}
	report(b, b.N)
}
