// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"testing"
)

// FuzzValue checks that every accepted value can be read to the end, and
// appended again without growing or changing.
func FuzzValue(f *testing.F) {
	for _, tt := range encodings {
		f.Add(unhex(f, tt.want))
	}
	f.Add(unhex(f, "e0 07 02 00 53 24 52 0102"))
	f.Add(unhex(f, "e0 0a 02 c0 03015001 03015002"))
	f.Add(unhex(f, "f0 00000005 00010000 40"))
	f.Add(unhex(f, "5601"))
	f.Add(unhex(f, "d0 00000009 00000001 d0 00000004 00000000"))
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := ParseValue(in)
		if err != nil {
			return // rejecting is fine, panicking is not
		}
		walk(t, v)
		canon := AppendValue(nil, v)
		if len(canon) > len(in) {
			t.Fatalf("re-encoding took %d bytes, the peer needed %d", len(canon), len(in))
		}
		again, err := ParseValue(canon)
		if err != nil {
			t.Fatalf("% x -> % x: %v", in, canon, err)
		}
		if b := AppendValue(nil, again); !bytes.Equal(b, canon) || again.Kind() != v.Kind() || again.String() != v.String() {
			t.Fatalf("% x -> % x -> % x", in, canon, b)
		}
	})
}

// walk visits everything in v, which was checked, so nothing may fail.
func walk(t *testing.T, v Value) {
	if _, inner, ok := v.Described(); ok {
		walk(t, inner)
	} else if v.Kind() == KindDescribed {
		t.Fatal("described value without a value")
	}
	in := v.Elements()
	for n := 0; in.More() && n < 1000; n++ { // arrays of nulls are long for their size
		walk(t, in.Value())
	}
	if in.Err() != nil {
		t.Fatalf("inside a checked %v: %v", v.Kind(), in.Err())
	}
}

// FuzzReader lets the input choose which reads are made of it.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, unhex(f, "00 53 13 c0 03 01 5207"))
	f.Add([]byte{12, 13, 14, 15, 16, 17}, unhex(f, "e0 06 02 a3 0161 0162 45 c10100"))
	f.Fuzz(func(t *testing.T, reads, in []byte) {
		r := NewReader(in)
		readers := []*Reader{&r}
		for _, op := range reads {
			r := readers[len(readers)-1]
			before, failed := r.Len(), r.Err()
			var nested Reader
			switch op % 22 {
			case 0:
				_, nested = r.Composite()
			case 1:
				nested = r.List()
			case 2:
				nested = r.Map()
			case 3:
				nested = r.Array()
			case 4:
				nested = r.Multiple()
			case 5:
				_, nested = r.Described()
			case 6:
				r.Bool()
			case 7:
				r.Uint()
			case 8:
				r.Long()
			case 9:
				r.Timestamp()
			case 10:
				r.UUID()
			case 11:
				r.Binary()
			case 12:
				_ = r.Str()
			case 13:
				_ = r.Value().String()
			case 14:
				r.Skip()
			case 15:
				r.Raw()
			case 16:
				r.Check()
			case 17:
				r.Null()
			case 18:
				r.Double()
			case 19:
				r.Pair()
			case 20:
				nested.Enter(r.Rest())
			case 21:
				if len(readers) > 1 {
					readers = readers[:len(readers)-1]
				}
				continue
			}
			if r.Len() > before || failed != nil && r.Err() != failed {
				t.Fatalf("op %d: %d bytes became %d, error %v became %v", op%22, before, r.Len(), failed, r.Err())
			}
			if nested.Len() > before || nested.Left() > max(before, maxEmpty) {
				t.Fatalf("op %d: %d bytes contain %d with %d values", op%22, before, nested.Len(), nested.Left())
			}
			if nested.More() {
				readers = append(readers, &nested)
			}
		}
	})
}
