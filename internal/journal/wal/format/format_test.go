// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

func FuzzDecodeFrame(f *testing.F) {
	b := make([]byte, FrameSize(5))
	Frame{Shard: 3, Epoch: 2, Number: 9, Payload: []byte("hello")}.Put(b)
	SumFrame(b, 7, 512)
	f.Add(b, uint32(7), uint64(512))
	f.Add(make([]byte, 64), uint32(0), uint64(0))
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, uint32(1), uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, seed uint32, off uint64) {
		got, size, err := DecodeFrame(in, seed, off)
		if err != nil {
			return // refusing is fine, panicking is not
		}
		again := make([]byte, size)
		got.Put(again)
		SumFrame(again, seed, off)
		back, _, err := DecodeFrame(again, seed, off)
		if err != nil || back.Number != got.Number || back.Shard != got.Shard || !bytes.Equal(back.Payload, got.Payload) {
			t.Fatalf("round trip: %+v became %+v, %v", got, back, err)
		}
	})
}

func TestSegmentListIsWrittenShort(t *testing.T) {
	for text, list := range map[string]SegmentList{
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
		var back SegmentList
		if err := json.Unmarshal([]byte(text), &back); err != nil || !slices.Equal(back, list) {
			t.Errorf("%s became %v, %v, want %v", text, back, err, list)
		}
	}
	var old SegmentList
	if err := json.Unmarshal([]byte("[1, 3, 4]"), &old); err != nil || !slices.Equal(old, SegmentList{1, 3, 4}) {
		t.Errorf("the array of version 1 became %v, %v", old, err)
	}
	for _, bad := range []string{`"7-1"`, `"1-"`, `"-1"`, `"x"`, `"1-99999999999999"`, `"1,,2"`, `5`} {
		if err := json.Unmarshal([]byte(bad), &old); err == nil {
			t.Errorf("%s became %d segments, want an error", bad, len(old))
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	m := &Manifest{SegmentSize: 4096, Synced: 4608, Shards: map[journal.Shard]*ShardManifest{3: {Epoch: 2, From: 5000, Segments: []uint64{1}}}}
	b, err := m.Encode()
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
		m, err := DecodeManifest(ManifestName, in)
		if err != nil {
			return
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeManifest(ManifestName, b); err != nil {
			t.Fatalf("its own encoding is refused: %v", err)
		}
	})
}

// A segment that says that it has a number for which there are no addresses is
// damaged.
func TestSegmentNumberWithoutAddresses(t *testing.T) {
	h := SegmentHead{Number: 1 << 60, SegmentSize: 64 << 20, Capacity: 4096}
	if got, err := DecodeSegmentHead(h.Encode()); err == nil {
		t.Errorf("decoded %+v", got)
	}
}
