// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

func TestBatchRoundTrip(t *testing.T) {
	d := full()
	big := Draft{Body: make([]byte, 1000)}
	ms := []*Message{d.Message(), big.Message(), parse(t, nil)}
	raw := AppendBatch(nil, ms...)

	envelope := parse(t, raw)
	if envelope.PartitionKey() != "pk" || envelope.MessageIDString() != "id-1" {
		t.Errorf("envelope has key %q and id %q, want those of the first", envelope.PartitionKey(), envelope.MessageIDString())
	}
	i := 0
	for m, err := range Batch(raw) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.Bytes(), ms[i].Bytes()) {
			t.Errorf("message %d changed", i)
		}
		i++
	}
	if i != len(ms) {
		t.Errorf("%d messages, want %d", i, len(ms))
	}
	for range Batch(raw) {
		break // must not go on
	}
}

// A message of a batch that is kept, in a cache say, keeps nothing of the batch with it.
func TestMessagesOfABatchHaveBytesOfTheirOwn(t *testing.T) {
	small := Draft{Body: []byte("small")}
	raw := AppendBatch(nil, small.Message(), small.Message())
	var ms []*Message
	for m, err := range Batch(raw) {
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	clear(raw)
	for i, m := range ms {
		if !bytes.Equal(m.Bytes(), small.Message().Bytes()) || cap(m.Bytes()) > 2*m.Size() {
			t.Errorf("message %d is % x, with space for %d bytes", i, m.Bytes(), cap(m.Bytes()))
		}
	}
}

// Messages are counted before any is read, however the envelope is written.
func TestBatchesAreCounted(t *testing.T) {
	inner := Draft{Body: []byte("x")}
	empty := unhex(t, "005375a000")
	for _, c := range []struct {
		name string
		raw  []byte
		want int
	}{
		{"one", AppendBatch(nil, inner.Message()), 1},
		{"three", AppendBatch(nil, inner.Message(), inner.Message(), inner.Message()), 3},
		{"with properties", AppendBatch(nil, func() *Message { d := full(); return d.Message() }(), inner.Message()), 2},
		{"in another spelling", bytes.Repeat(unhex(t, "00800000000000000075a000"), 5), 5},
		{"none", nil, 1},
		{"no batch", unhex(t, "00537740"), 1},
		{"damaged", empty[:4], 1},
		{"more than there may be", bytes.Repeat(empty, limits.Batch+10), limits.Batch},
	} {
		if n := CountBatch(c.raw); n != c.want {
			t.Errorf("%s: %d messages, want %d", c.name, n, c.want)
		}
	}
	raw := AppendBatch(nil, inner.Message(), inner.Message())
	if n := testing.AllocsPerRun(10, func() { CountBatch(raw) }); n != 0 {
		t.Errorf("counting allocates %v times", n)
	}
}

func TestBatchRefuses(t *testing.T) {
	inner := Draft{Body: []byte("x")}
	good := AppendBatch(nil, inner.Message())
	tests := []struct {
		name string
		raw  []byte
		want error
		n    int
	}{
		{"nothing", nil, ErrBatch, 0},
		{"no data", unhex(t, "00537345"), ErrBatch, 0},
		{"value body", unhex(t, "00537740"), ErrBatch, 0},
		{"broken envelope", good[:len(good)-1], codec.ErrShort, 0},
		{"broken message", append(good, unhex(t, "005375a0020053")...), ErrSection, 1},
	}
	for _, tt := range tests {
		n := 0
		var last error
		for m, err := range Batch(tt.raw) {
			if last != nil {
				t.Errorf("%s: went on after %v", tt.name, last)
			}
			if last = err; m != nil {
				n++
			}
		}
		if !errors.Is(last, tt.want) || n != tt.n {
			t.Errorf("%s: %d messages and error %v, want %d and %v", tt.name, n, last, tt.n, tt.want)
		}
	}
}
