// SPDX-License-Identifier: Apache-2.0

package codec

import "testing"

func TestNothingAllocates(t *testing.T) {
	buf := make([]byte, 0, 1024)
	values := []Value{
		Bool(true), Uint(70000), Long(-5), Timestamp(someTime), UUID(someID), String("name"), Symbol("key"),
		Binary([]byte("body")), List(Uint(1), String("x")), Map(Symbol("k"), Long(1)),
	}
	sum := 0
	got := testing.AllocsPerRun(100, func() {
		b := AppendDescriptor(buf, 0x14)
		b, at := BeginList(b)
		for _, v := range values {
			b = AppendValue(b, v)
		}
		b = EndList(b, at, len(values))

		r := NewReader(b)
		_, f := r.Composite()
		f.Bool()
		f.Uint()
		f.Long()
		f.Timestamp()
		id := f.UUID()
		sum += len(f.Text()) + len(f.Text()) + len(f.Binary()) + int(id[0])
		for e := range f.Value().List() {
			n, _ := e.Int()
			sum += int(n)
		}
		if v, ok := f.Value().Lookup("k"); ok && f.Err() == nil {
			n, _ := v.Int()
			sum += int(n)
		}
		whole := NewReader(b)
		whole.Check()
	})
	if got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
	if sum == 0 {
		t.Error("nothing was read")
	}
}

func BenchmarkReadComposite(b *testing.B) {
	transfer := unhex(b, "00 53 14 c0 20 06 5203 520c a01000112233445566778899aabbccddeeff 43 42 42")
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(transfer)
		_, f := r.Composite()
		f.Uint()
		f.Uint()
		f.Binary()
		f.Uint()
		f.Bool()
		f.Bool()
		if f.Err() != nil {
			b.Fatal(f.Err())
		}
	}
}
