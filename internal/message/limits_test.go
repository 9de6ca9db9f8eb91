// SPDX-License-Identifier: Apache-2.0

package message

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// Issue 10, limits of messages: at the limit is accepted, one more is
// rejected.
func TestCheckLimits(t *testing.T) {
	text := func(n int) string { return strings.Repeat("ü", n) }
	pairs := func(name string, n int) []Pair {
		return []Pair{{Name: name, Value: codec.Binary(make([]byte, n))}}
	}
	for name, tt := range map[string]struct {
		fits, beyond Draft
	}{
		"session id":          {Draft{SessionID: text(128)}, Draft{SessionID: text(129)}},
		"message id":          {Draft{MessageID: codec.String(text(128))}, Draft{MessageID: codec.String(text(129))}},
		"binary message id":   {Draft{MessageID: codec.Binary(make([]byte, 128))}, Draft{MessageID: codec.Binary(make([]byte, 129))}},
		"reply-to session id": {Draft{ReplyToSessionID: text(128)}, Draft{ReplyToSessionID: text(129)}},
		"partition key": {
			Draft{Annotations: []Pair{{AnnotationPartitionKey, codec.String(text(128))}}},
			Draft{Annotations: []Pair{{AnnotationPartitionKey, codec.String(text(129))}}},
		},
		"via partition key": {
			Draft{Annotations: []Pair{{AnnotationViaPartitionKey, codec.String(text(128))}}},
			Draft{Annotations: []Pair{{AnnotationViaPartitionKey, codec.String(text(129))}}},
		},
		// Both have a code and a length: of one byte, and of four.
		"one property":         {Draft{Application: pairs("p", 32<<10-1-2-5)}, Draft{Application: pairs("p", 32<<10-2-5)}},
		"name of a property":   {Draft{Application: pairs(strings.Repeat("n", 32<<10-5-2), 0)}, Draft{Application: pairs(strings.Repeat("n", 32<<10-5-1), 0)}},
		"all properties":       {Draft{Application: many(63)}, Draft{Application: many(65)}},
		"message annotations":  {Draft{Annotations: many(63)}, Draft{Annotations: many(65)}},
		"delivery annotations": {Draft{DeliveryAnnotations: many(63)}, Draft{DeliveryAnnotations: many(65)}},
		"subject":              {Draft{Subject: strings.Repeat("s", 63<<10)}, Draft{Subject: strings.Repeat("s", 64<<10)}},
		"body":                 {Draft{Body: make([]byte, 1<<20)}, Draft{Body: make([]byte, 1<<20), SessionID: text(129)}},
	} {
		if err := tt.fits.Message().CheckLimits(); err != nil {
			t.Errorf("%s at its limit: %v, want nil", name, err)
		}
		if err := tt.beyond.Message().CheckLimits(); !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%s beyond its limit: %v, want %v", name, err, limits.ErrExceeded)
		}
	}
	footer := func(n int) *Message {
		d := Draft{Body: []byte("x")}
		raw := appendPairs(d.Encode(nil), codeFooter, many(n))
		m, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := footer(63).CheckLimits(); err != nil {
		t.Errorf("footer at its limit: %v, want nil", err)
	}
	if err := footer(65).CheckLimits(); !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("footer beyond its limit: %v, want %v", err, limits.ErrExceeded)
	}
}

// many returns properties of n KiB together.
func many(n int) []Pair {
	var ps []Pair
	for range n {
		ps = append(ps, Pair{Name: "name", Value: codec.Binary(make([]byte, 1000))})
	}
	return ps
}

// Issue 10, number 2: a batch is parsed only up to the maximum number of
// messages.
func TestBatchOfTooManyMessages(t *testing.T) {
	batch := func(n int) []byte {
		var raw []byte
		for range n {
			raw = codec.AppendBinary(codec.AppendDescriptor(raw, codeData), nil)
		}
		return raw
	}
	count := func(raw []byte) (n int, err error) {
		for _, err := range Batch(raw) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}
	if n, err := count(batch(limits.Batch)); n != limits.Batch || err != nil {
		t.Errorf("a batch at the limit: %d messages, %v", n, err)
	}
	if n, err := count(batch(50_000)); n != limits.Batch || !errors.Is(err, limits.ErrExceeded) {
		t.Errorf("a batch of 50,000: %d messages, %v, want %v after %d", n, err, limits.ErrExceeded, limits.Batch)
	}
}

func TestCheckChanges(t *testing.T) {
	change := func(n int) Change { return Change{Name: "p", Value: codec.Binary(make([]byte, n))} }
	if n, err := CheckChanges([]Change{change(30 << 10), change(30 << 10)}); err != nil || n < 60<<10 {
		t.Errorf("60 KiB: %d, %v, want its size and nil", n, err)
	}
	for name, cs := range map[string][]Change{
		"one":          {change(32 << 10)},
		"all together": {change(30 << 10), change(30 << 10), change(30 << 10)},
	} {
		if _, err := CheckChanges(cs); !errors.Is(err, limits.ErrExceeded) {
			t.Errorf("%s: %v, want %v", name, err, limits.ErrExceeded)
		}
	}
}

func BenchmarkCheckLimits(b *testing.B) {
	d := Draft{MessageID: codec.String("0123456789abcdef0123456789abcdef"), Application: many(4), Body: make([]byte, 256)}
	m := d.Message()
	for b.Loop() {
		if m.CheckLimits() != nil {
			b.Fatal()
		}
	}
}
