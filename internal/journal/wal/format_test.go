// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// makeBatch returns a finished batch of records at the start of a segment.
func makeBatch(seg *store.Segment, first uint64, payloads ...string) *batch {
	b := new(batch)
	b.reset(seg, format.HeaderSize, format.KindRecords, first)
	for i, p := range payloads {
		n := len(b.buf)
		b.buf = append(b.buf, make([]byte, format.FrameSize(len(p)))...)
		format.Frame{Shard: 1, Epoch: 1, Number: first + uint64(i), Payload: []byte(p)}.Put(b.buf[n:])
		b.count++
	}
	b.finish(0)
	return b
}

// A batch that tore, and one of the same shape that was written over it and tore
// too, can leave a mixture in which every single frame is whole.
func TestMixedBatchesAreToldApart(t *testing.T) {
	seg := &store.Segment{Number: 1, Seed: 99, Head: format.SegmentHead{SegmentSize: 64 << 10, Capacity: 64 << 10}}
	one := makeBatch(seg, 10, "aaaa", "bbbb", "cccc")
	two := makeBatch(seg, 10, "AAAA", "BBBB", "CCCC")
	mixed := bytes.Clone(two.buf)
	copy(mixed[len(mixed)-2*format.FrameSize(4):], one.buf[len(mixed)-2*format.FrameSize(4):])

	head, err := format.DecodeBatchHead(mixed, seg.Seed, format.HeaderSize, seg.Head.Capacity)
	if err != nil {
		t.Fatalf("the header is whole, and yet: %v", err)
	}
	if _, err := format.CheckBatch(head, two.buf, seg.Seed, format.HeaderSize); err != nil {
		t.Fatalf("unmixed: %v", err)
	}
	if _, err := format.CheckBatch(head, mixed, seg.Seed, format.HeaderSize); !errors.Is(err, format.ErrDigest) {
		t.Fatalf("mixed: %v, want %v", err, format.ErrDigest)
	}
}

// A file that is used again must not show anything of its former life, even
// where the frames would fit.
func TestRecycledFileIsNotMisread(t *testing.T) {
	disk := vfs.NewMem()
	w := open(t, disk)
	c, _ := claim(t, w, 1)
	var first journal.Position
	for i := range 400 {
		at := appendOne(t, w, c, "always the same size")
		commit(t, w)
		if i == 0 {
			first = at
		}
		if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := journal.ReadOne(ctx, w, first, nil); !errors.Is(err, journal.ErrFreed) {
		t.Errorf("a freed record: %v, want %v", err, journal.ErrFreed)
	}
	if _, got := claim(t, open(t, disk.CrashClone(0)), 1); len(got) != 1 {
		t.Errorf("after 400 records and as many truncations: %d records, want the last", len(got))
	}
	names, err := disk.List(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) > 8 {
		t.Errorf("files pile up: %v", names)
	}
}

// FuzzRecovery opens a store one of whose segments holds whatever the fuzzer
// likes. It may be refused; it must not panic, nor yield what fails a checksum.
func FuzzRecovery(f *testing.F) {
	disk := vfs.NewMem()
	w := open(f, disk)
	c, _ := claim(f, w, 1)
	for i := range 20 {
		appendOne(f, w, c, numbered(i))
		commit(f, w)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	whole := make([]byte, 16<<10)
	file, err := disk.Open(store.SegmentName(1))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := file.ReadAt(whole, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(whole, uint16(0))
	f.Add(whole[:1000], uint16(0))
	f.Add([]byte("garbage"), uint16(700))
	f.Add(make([]byte, 3000), uint16(1000))
	f.Fuzz(func(t *testing.T, in []byte, off uint16) {
		disk := disk.CrashClone(0)
		file, err := disk.Open(store.SegmentName(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(in, int64(off)); err != nil {
			t.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
		for range repair.Dump(disk) {
			continue
		}
		repaired := disk.CrashClone(0)
		if _, err := repair.Repair(repaired, repair.DropDamaged); err != nil {
			t.Fatalf("repair: %v", err)
		}
		if _, err := repair.Verify(repaired); err != nil {
			t.Fatalf("verify after the repair: %v", err)
		}
		_, verified := repair.Verify(disk)
		w, err := Open(disk, Options{})
		if err != nil {
			if verified == nil {
				t.Fatalf("verify finds nothing, and open refuses: %v", err)
			}
			return
		}
		defer w.Close()
		_, got, err := replayed(w, 1)
		if err == nil && verified == nil && len(got) < 20 {
			t.Fatalf("%d of 20 records, and no error", len(got))
		}
		for i, rec := range got {
			if string(rec.Payload) != numbered(i) {
				t.Fatalf("record %d: %.20q", i, rec.Payload)
			}
		}
	})
}
