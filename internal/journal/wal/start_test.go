// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// readCounter is a disk that counts the bytes read from it.
type readCounter struct {
	vfs.FS
	read atomic.Int64
}

type countedFile struct {
	vfs.File
	fs *readCounter
}

func (d *readCounter) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	return countedFile{f, d}, err
}

func (d *readCounter) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return countedFile{f, d}, err
}

func (f countedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.fs.read.Add(int64(n))
	return n, err
}

// fillShards makes a store with a log of size bytes, written by that many shards
// in turns, and returns what the log takes.
func fillShards(t testing.TB, fsys vfs.FS, opts Options, shards, size int) uint64 {
	t.Helper()
	w, err := Open(fsys, opts)
	if err != nil {
		t.Fatal(err)
	}
	claims, _, err := w.Claim(ctx, numbersBelow(shards)...)
	if err != nil {
		t.Fatal(err)
	}
	records, at := make([][]byte, 100), make([]journal.Position, 100)
	for i := range records {
		records[i] = make([]byte, benchRecord)
	}
	for i := 0; w.Stats().Bytes < uint64(size); i++ {
		g := &journal.Group{Records: records, At: at}
		if err := w.Append(claims[i%shards], g); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	wrote := w.Stats().Bytes
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return wrote
}

func numbersBelow(n int) []journal.Shard {
	all := make([]journal.Shard, n)
	for i := range all {
		all[i] = journal.Shard(i)
	}
	return all
}

// startAll opens a store, claims every shard in one pass and drains the replay.
func startAll(t testing.TB, fsys vfs.FS, shards int) (records int) {
	t.Helper()
	w, err := Open(fsys, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, seq, err := w.Claim(ctx, numbersBelow(shards)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return records
}

// BenchmarkStart measures what a broker waits for when it starts: opening a store
// and replaying a log of 330 MB, for 1, 2 and 64 shards. The time must not depend
// on how many there are.
func BenchmarkStart(b *testing.B) {
	const size = 330 << 20
	for _, shards := range []int{1, 2, 64} {
		b.Run(fmt.Sprint("shards=", shards), func(b *testing.B) {
			disk := &readCounter{FS: vfs.OS(b.TempDir())}
			wrote := fillShards(b, disk, Options{}, shards, size)
			disk.read.Store(0)
			n := 0
			b.SetBytes(int64(wrote))
			for b.Loop() {
				startAll(b, disk, shards)
				n++
			}
			b.ReportMetric(float64(disk.read.Load())/float64(n)/float64(wrote), "read/log")
		})
	}
}

// A14: a start reads the log once, whatever the number of shards, and the last
// segment once more to find its end. Of segments that are kept only for their
// bodies it reads the header.
func TestStartReadsTheLogOnce(t *testing.T) {
	const segment, size = 8 << 20, 32 << 20
	for _, shards := range []int{1, 2, 64} {
		disk := &readCounter{FS: vfs.NewMem()}
		wrote := fillShards(t, disk, Options{SegmentSize: segment}, shards, size)
		disk.read.Store(0)
		want := int(wrote) / (benchRecord + format.FrameHeader + format.BatchHeader/100) / 100 * 100
		if got := startAll(t, disk, shards); got < want*99/100 {
			t.Errorf("%d shards: %d records, want %d or more", shards, got, want)
		}
		if read, most := disk.read.Load(), int64(wrote)+segment+3*store.ReadStep; read > most {
			t.Errorf("%d shards: %d bytes read for a log of %d", shards, read, wrote)
		}

		// All but the end of the log is kept for its bodies only.
		w, err := Open(disk, Options{})
		if err != nil {
			t.Fatal(err)
		}
		claims, _, err := w.Claim(ctx, numbersBelow(shards)...)
		if err != nil {
			t.Fatal(err)
		}
		keep := journal.Retain{From: w.log.synced}
		for n := range w.segs {
			if n < claims[0].Segment(keep.From) {
				keep.Segments = append(keep.Segments, n)
			}
		}
		slices.Sort(keep.Segments)
		for _, c := range claims {
			if err := w.Truncate(ctx, c, keep); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		disk.read.Store(0)
		startAll(t, disk, shards)
		if read := disk.read.Load(); read > 2*segment {
			t.Errorf("%d shards, with %d segments kept: %d bytes read, want no more than the last segment, twice", shards, len(keep.Segments), read)
		}
	}
}
