// SPDX-License-Identifier: Apache-2.0

package property

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func TestJSON(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	for _, tt := range []struct {
		value codec.Value
		want  string
	}{
		{codec.Value{}, `null`},
		{codec.Bool(true), `true`},
		{codec.String("x"), `"x"`},
		{codec.Symbol("x"), `"x"`},
		{codec.Ubyte(255), `255`},
		{codec.Long(math.MinInt64), `-9223372036854775808`},
		{codec.Ulong(math.MaxUint64), `18446744073709551615`},
		{codec.Double(1.5), `1.5`},
		{codec.Double(math.Inf(1)), `"+Inf"`},
		{codec.Float(float32(math.NaN())), `"NaN"`},
		{codec.Char('é'), `"é"`},
		{codec.Binary([]byte{0, 255}), `"AP8="`},
		{codec.Timestamp(at), `"2026-01-02T03:04:05.006Z"`},
		{codec.UUID([16]byte{1, 15: 255}), `"01000000-0000-0000-0000-0000000000ff"`},
		{codec.List(codec.Int(1), codec.String("a")), `[1,"a"]`},
		{codec.List(), `[]`},
		{codec.Map(), `{}`},
		{codec.String("<\"\x01ü"), "\"\\u003c\\\"\\u0001ü\""},
		{codec.Map(codec.String("k"), codec.Int(1), codec.Int(2), codec.Bool(false)), `{"k":1,"2":false}`},
	} {
		got, ok := Append(nil, tt.value, 1000)
		if !ok || string(got) != tt.want || !json.Valid(got) {
			t.Errorf("%v is %s, %t, want %s", tt.value, got, ok, tt.want)
		}
		if got, ok := Append([]byte("x"), tt.value, len(tt.want)); !ok || string(got) != "x"+tt.want {
			t.Errorf("%v in as many bytes as it takes is %s, %t", tt.value, got, ok)
		}
		if got, ok := Append([]byte("x"), tt.value, len(tt.want)-1); ok || string(got) != "x" {
			t.Errorf("%v in one byte less is %s, %t, want nothing", tt.value, got, ok)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]codec.Kind{
		`null`: codec.KindNull, `"x"`: codec.KindString, `true`: codec.KindBool, `5`: codec.KindLong, `5.5`: codec.KindDouble,
		`{"type":"int","value":"5"}`:                         codec.KindInt,
		`{"type":"dateTime","value":"2026-01-02T03:04:05Z"}`: codec.KindTimestamp,
	} {
		if got, err := Parse([]byte(text)); err != nil || got.Kind() != want {
			t.Errorf("Parse(%s) is a %v, %v, want a %v", text, got.Kind(), err, want)
		}
	}
	for _, text := range []string{``, `[1]`, `{"a":1}`, `{"type":"int","value":"x"}`, `99999999999999999999`} {
		if got, err := Parse([]byte(text)); err == nil {
			t.Errorf("Parse(%s) = %v, want an error", text, got)
		}
	}
}

func TestUUID(t *testing.T) {
	id := [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	text := UUID(id)
	if text != "00010203-0405-0607-0809-0a0b0c0d0e0f" {
		t.Errorf("UUID = %s", text)
	}
	if got, ok := ParseUUID(text); !ok || got != id {
		t.Errorf("ParseUUID(%s) = %v, %v", text, got, ok)
	}
	for _, bad := range []string{"", text[1:], text + "0", "0001020300405-0607-0809-0a0b0c0d0e0f", "g0010203-0405-0607-0809-0a0b0c0d0e0f"} {
		if got, ok := ParseUUID(bad); ok {
			t.Errorf("ParseUUID(%q) = %v, want none", bad, got)
		}
	}
}
