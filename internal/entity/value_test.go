// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestValuesKeepTheirTypes(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 800, time.UTC)
	for _, c := range []struct {
		in        any
		typ, text string
		json      string
	}{
		{"x", "string", "x", `"x"`},
		{true, "boolean", "true", `true`},
		{int32(5), "int", "5", `{"type":"int","value":"5"}`},
		{int64(5), "long", "5", `5`},
		{1.5, "double", "1.5", `{"type":"double","value":"1.5"}`},
		{2.0, "double", "2", `{"type":"double","value":"2"}`},
		{at, "dateTime", "2026-03-04T05:06:07.0000008Z", `{"type":"dateTime","value":"2026-03-04T05:06:07.0000008Z"}`},
		{90 * time.Second, "duration", "PT1M30S", `{"type":"duration","value":"PT1M30S"}`},
	} {
		v, err := NewValue(c.in)
		if err != nil {
			t.Errorf("NewValue(%v): %v", c.in, err)
			continue
		}
		if v.Type() != c.typ || v.String() != c.text || v.Any() != c.in {
			t.Errorf("%v is a %s %q, want a %s %q", v.Any(), v.Type(), v.String(), c.typ, c.text)
		}
		if parsed, err := ParseValue(c.typ, c.text); err != nil || parsed != v {
			t.Errorf("ParseValue(%s, %q) = %v, %v, want %v", c.typ, c.text, parsed, err, v)
		}
		out, err := json.Marshal(v)
		if err != nil || string(out) != c.json {
			t.Errorf("%v in JSON is %s, %v, want %s", v, out, err, c.json)
		}
		var again Value
		if err := json.Unmarshal(out, &again); err != nil || again != v {
			t.Errorf("%s is read as %#v, %v, want %#v", out, again, err, v)
		}
	}
}

func TestPlainNumbersInJSON(t *testing.T) {
	for in, want := range map[string]any{"3": int64(3), "3.0": 3.0, "1e3": 1000.0, "-2": int64(-2), "null": nil} {
		var v Value
		if err := json.Unmarshal([]byte(in), &v); err != nil || v.Any() != want {
			t.Errorf("%s is read as %#v, %v, want %#v", in, v.Any(), err, want)
		}
	}
}

func TestValuesRefuse(t *testing.T) {
	for _, in := range []any{nil, []byte("x"), struct{}{}, uint64(1)} {
		if _, err := NewValue(in); !errors.Is(err, ErrValue) {
			t.Errorf("NewValue(%v): %v, want %v", in, err, ErrValue)
		}
	}
	for _, in := range [][2]string{
		{"int", "3000000000"}, {"long", "x"}, {"double", "NaN"}, {"boolean", "yes"}, {"dateTime", "today"}, {"duration", "-5m"}, {"byte", "1"},
	} {
		if _, err := ParseValue(in[0], in[1]); !errors.Is(err, ErrValue) {
			t.Errorf("ParseValue(%s, %s): %v, want %v", in[0], in[1], err, ErrValue)
		}
	}
	var v Value
	for _, in := range []string{`[1]`, `{"type":"int"}`, `{}`, `99999999999999999999`} {
		if err := json.Unmarshal([]byte(in), &v); err == nil {
			t.Errorf("%s was accepted as %v", in, v)
		}
	}
}

// What has no text that can be read again is no value: it is stored as text.
func TestValuesCanBeReadAgain(t *testing.T) {
	for _, text := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"} {
		if v, err := ParseValue("dateTime", text); !errors.Is(err, ErrValue) {
			t.Errorf("%s is %v, %v, want %v", text, v, err, ErrValue)
		}
	}
	for _, in := range []any{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), -time.Second} {
		if v, err := NewValue(in); !errors.Is(err, ErrValue) {
			t.Errorf("%v is %v, %v, want %v", in, v, err, ErrValue)
		}
	}
}
