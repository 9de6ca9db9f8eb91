// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// makeBatch returns a finished batch of records at the start of a segment.
func makeBatch(seg *segment, first uint64, payloads ...string) *batch {
	b := new(batch)
	b.reset(seg, headerSize, kindRecords, first)
	for i, p := range payloads {
		n := len(b.buf)
		b.buf = append(b.buf, make([]byte, frameSize(len(p)))...)
		frame{1, 1, first + uint64(i), []byte(p)}.put(b.buf[n:])
		b.count++
	}
	b.finish(0)
	return b
}

// A batch that tore, and one of the same shape that was written over it and tore
// too, can leave a mixture in which every single frame is whole.
func TestMixedBatchesAreToldApart(t *testing.T) {
	seg := &segment{number: 1, seed: 99, head: segmentHead{block: 64 << 10, capacity: 64 << 10}}
	one := makeBatch(seg, 10, "aaaa", "bbbb", "cccc")
	two := makeBatch(seg, 10, "AAAA", "BBBB", "CCCC")
	mixed := bytes.Clone(two.buf)
	copy(mixed[len(mixed)-2*frameSize(4):], one.buf[len(mixed)-2*frameSize(4):])

	head, err := decodeBatchHead(mixed, seg.seed, headerSize, seg.head.capacity)
	if err != nil {
		t.Fatalf("the header is whole, and yet: %v", err)
	}
	if _, err := checkBatch(head, two.buf, seg.seed, headerSize); err != nil {
		t.Fatalf("unmixed: %v", err)
	}
	if _, err := checkBatch(head, mixed, seg.seed, headerSize); !errors.Is(err, errDigest) {
		t.Fatalf("mixed: %v, want %v", err, errDigest)
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

func FuzzDecodeFrame(f *testing.F) {
	b := make([]byte, frameSize(5))
	frame{3, 2, 9, []byte("hello")}.put(b)
	sumFrame(b, 7, 512)
	f.Add(b, uint32(7), uint64(512))
	f.Add(make([]byte, 64), uint32(0), uint64(0))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint32(1), uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed uint32, off uint64) {
		got, size, err := decodeFrame(in, seed, off)
		if err != nil {
			return // refusing is fine, panicking is not
		}
		again := make([]byte, size)
		got.put(again)
		sumFrame(again, seed, off)
		back, _, err := decodeFrame(again, seed, off)
		if err != nil || back.number != got.number || back.shard != got.shard || !bytes.Equal(back.payload, got.payload) {
			t.Fatalf("round trip: %+v became %+v, %v", got, back, err)
		}
	})
}

func TestBlocksAreWrittenShort(t *testing.T) {
	for text, list := range map[string]blocks{
		`"1"`:            {1},
		`"1-2"`:          {1, 2},
		`"1,3-7,9"`:      {1, 3, 4, 5, 6, 7, 9},
		`"5,7,9,11-12"`:  {5, 7, 9, 11, 12},
		`"100-103,1000"`: {100, 101, 102, 103, 1000},
	} {
		got, err := json.Marshal(list)
		if err != nil || string(got) != text {
			t.Errorf("%v became %s, %v, want %s", list, got, err, text)
		}
		var back blocks
		if err := json.Unmarshal([]byte(text), &back); err != nil || !slices.Equal(back, list) {
			t.Errorf("%s became %v, %v, want %v", text, back, err, list)
		}
	}
	var old blocks
	if err := json.Unmarshal([]byte("[1, 3, 4]"), &old); err != nil || !slices.Equal(old, blocks{1, 3, 4}) {
		t.Errorf("the array of version 1 became %v, %v", old, err)
	}
	for _, bad := range []string{`"7-1"`, `"1-"`, `"-1"`, `"x"`, `"1-99999999999999"`, `"1,,2"`, `5`} {
		if err := json.Unmarshal([]byte(bad), &old); err == nil {
			t.Errorf("%s became %d blocks, want an error", bad, len(old))
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	m := &manifest{SegmentSize: 4096, Synced: 4608, Shards: map[journal.Shard]*shardManifest{3: {Epoch: 2, From: 5000, Blocks: []uint64{1}}}}
	b, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("triagemq-journal 1 00000000 0\n"))
	for _, list := range []string{`"1,3-7"`, `"1-99999999999999"`, `[1,2]`, `"7-1"`, `""`, `null`} {
		body := []byte(`{"segmentSize":4096,"synced":4608,"shards":{"3":{"epoch":2,"from":5000,"blocks":` + list + `}}}`)
		f.Add(withHead(body))
	}
	f.Add([]byte("triagemq-journal 2 00000000 0\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := decodeManifest(manifestName, in)
		if err != nil {
			return
		}
		b, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(manifestName, b); err != nil {
			t.Fatalf("its own encoding is refused: %v", err)
		}
	})
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
	file, err := disk.Open(segmentName(1))
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
		file, err := disk.Open(segmentName(1))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(in, int64(off)); err != nil {
			t.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
		for range Dump(disk) {
			continue
		}
		repaired := disk.CrashClone(0)
		if _, err := Repair(repaired, DropDamaged); err != nil {
			t.Fatalf("repair: %v", err)
		}
		if _, err := Verify(repaired); err != nil {
			t.Fatalf("verify after the repair: %v", err)
		}
		_, verified := Verify(disk)
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
			t.Fatalf("%d of 20 records, and nobody complains", len(got))
		}
		for i, rec := range got {
			if string(rec.Payload) != numbered(i) {
				t.Fatalf("record %d: %.20q", i, rec.Payload)
			}
		}
	})
}
