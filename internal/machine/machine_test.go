// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

func TestReaderReadsWhatEffectsWrote(t *testing.T) {
	var e machine.Effects
	e.SetPrefix([]byte{7})
	e.Begin(1)
	e.Byte(2)
	e.Uint(300)
	e.Fixed(math.MaxInt64)
	e.Ref(machine.Ref{At: 1 << 40, Size: 9})
	e.String("name")
	e.Bytes([]byte("meta"))
	e.Raw([]byte("raw"))
	e.End()
	e.BeginPlain(3)
	e.End()

	recs := e.Records()
	if len(recs) != 2 || e.Count() != 2 || !bytes.Equal(recs[1], []byte{3}) {
		t.Fatalf("records %x", recs)
	}
	if e.Size() != len(recs[0])+len(recs[1]) || e.Payload() != e.Size()-1 {
		t.Errorf("size %d, payload %d", e.Size(), e.Payload())
	}
	r := machine.NewReader(recs[0])
	if p, k := r.Byte(), r.Byte(); p != 7 || k != 1 {
		t.Errorf("prefix %d, kind %d", p, k)
	}
	if b, n, f := r.Byte(), r.Uint(), r.Time(); b != 2 || n != 300 || f != math.MaxInt64 {
		t.Errorf("got %d, %d, %d", b, n, f)
	}
	if ref := r.Ref(); ref != (machine.Ref{At: 1 << 40, Size: 9}) {
		t.Errorf("ref %v", ref)
	}
	if s, b, raw := r.String(), r.Bytes(), r.Take(3); s != "name" || string(b) != "meta" || string(raw) != "raw" {
		t.Errorf("got %q, %q, %q", s, b, raw)
	}
	if r.Bad() || r.Len() != 0 {
		t.Errorf("bad %t, %d left", r.Bad(), r.Len())
	}

	e.Reset()
	if e.Count() != 0 || e.Size() != 0 || e.Payload() != 0 {
		t.Error("something is left after Reset")
	}
}

func TestReaderRefuses(t *testing.T) {
	for name, read := range map[string]func(*machine.Reader){
		"a cut number":        func(r *machine.Reader) { r.Uint() },
		"a cut string":        func(r *machine.Reader) { _ = r.String() },
		"a number above":      func(r *machine.Reader) { r.UpTo(4) },
		"unknown flags":       func(r *machine.Reader) { r.Flags(1) },
		"bytes that are gone": func(r *machine.Reader) { r.Fixed() },
	} {
		r := machine.NewReader([]byte{0x85})
		if name == "a number above" {
			r = machine.NewReader([]byte{5})
		}
		read(&r)
		if !r.Bad() || r.Len() != 0 || r.Byte() != 0 {
			t.Errorf("%s: accepted", name)
		}
	}
}
