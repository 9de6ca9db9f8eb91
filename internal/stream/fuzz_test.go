// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// FuzzReplay replays records that nobody has written. Whatever they say, a partition that
// accepts them is whole, and can be written and read again. The first byte says whether
// records may be missing; the length of each record is before it.
func FuzzReplay(f *testing.F) {
	_, lines := everyKind()
	for _, tolerant := range []byte{0, 1} {
		for _, skip := range []int{-1, 0, 3, 5} {
			data := []byte{tolerant}
			for i, line := range lines {
				if rec, err := hex.DecodeString(line); err == nil && i != skip {
					data = append(append(data, byte(len(rec))), rec...)
				}
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := New()
		var out machine.Effects
		if len(data) > 0 && data[0]&1 != 0 {
			p.Tolerate()
		}
		refs := map[machine.Ref]int{}
		for data = data[min(1, len(data)):]; len(data) > 0; {
			n := min(int(data[0]), len(data)-1)
			if p.Replay(data[1:1+n], &out) != nil {
				return
			}
			data = data[1+n:]
		}
		if p.restore.on {
			p.EndReplay()
		}
		if !p.Restored() {
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Added {
			refs[r]++
		}
		for _, r := range out.Freed {
			refs[r]--
		}
		machine.AllRefs(p, func(r machine.Ref) { refs[r]-- })
		for r, n := range refs {
			if n != 0 {
				t.Fatalf("body %v is counted %d times too often", r, n)
			}
		}
		again(t, p)
	})
}

// again writes a snapshot and reads it.
func again(t *testing.T, p *Partition) {
	var out machine.Effects
	snap := p.Snapshot()
	for !snap.Step(&machine.Budget{Items: 2, Bytes: 1000}, nil, &out) {
	}
	q := New()
	for _, rec := range out.Records() {
		if err := q.Replay(rec, new(machine.Effects)); err != nil {
			t.Fatalf("its own snapshot: %v", err)
		}
	}
	if got, want := describe(q), describe(p); got != want {
		t.Fatalf("its own snapshot:\ngot  %s\nwant %s", got, want)
	}
	if len(p.open) > 0 {
		b := blockOf(p.open, machine.Ref{})
		if got, err := DecodeIndex(p.AppendIndex(nil), b, nil); err != nil || !slices.Equal(got, p.open) {
			t.Fatalf("its own index: %v, %v", got, err)
		}
	}
}

func FuzzDecodeIndex(f *testing.F) {
	_, lines := everyKind()
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, "index "); ok {
			raw, _ := hex.DecodeString(text)
			f.Add(raw, int64(0), int64(103))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, first, end int64) {
		of := Block{First: SeqNo(first), End: SeqNo(end)}
		if got, err := DecodeIndex(raw, of, nil); err == nil && (got[0].First != of.First || got[len(got)-1].End() != of.End) {
			t.Fatalf("%v of block %v", got, of)
		}
	})
}
