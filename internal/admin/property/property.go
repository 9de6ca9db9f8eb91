// SPDX-License-Identifier: Apache-2.0

// Package property turns the values of message properties into JSON and back.
//
// # Promise
//
// Strings, booleans, whole numbers and fractions are themselves in JSON; a value
// of another type can be written with it: {"type": "int", "value": "5"}. What JSON
// has no word for is shown as text.
//
// # Concurrency
//
// Everything here is a pure function.
package property

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter/value"
)

// Append appends a value as JSON to dst, with up to most bytes. A value that takes
// more is left out, and ok is false: a few bytes of AMQP can be an array of a great many
// nulls. The work is bounded by most as well.
func Append(dst []byte, v codec.Value, most int) (_ []byte, ok bool) {
	w := writer{dst: dst, most: len(dst) + most}
	if !w.value(v) {
		return dst, false
	}
	return w.dst, true
}

// Text returns a value of a type that ids may have, or any other that is not
// compound, as text.
func Text(v codec.Value) string {
	switch v.Kind() {
	case codec.KindBinary:
		b, _ := v.Bytes()
		return base64.StdEncoding.EncodeToString(b)
	case codec.KindUUID:
		id, _ := v.UUID()
		return UUID(id)
	}
	return v.String()
}

// writer writes one value.
type writer struct {
	dst  []byte
	most int // length of dst
}

// add appends text and reports whether it fits.
func (w *writer) add(text string) bool {
	if len(w.dst)+len(text) > w.most {
		return false
	}
	w.dst = append(w.dst, text...)
	return true
}

// text appends a string in quotes.
func (w *writer) text(s string) bool {
	if len(w.dst)+len(s)+2 > w.most { // escaping only makes it longer
		return false
	}
	b, err := json.Marshal(s)
	return err == nil && w.add(string(b))
}

// value appends a value and reports whether it fits. If it does not, dst has a part of
// it.
func (w *writer) value(v codec.Value) bool {
	switch v.Kind() {
	case codec.KindNull:
		return w.add("null")
	case codec.KindBool:
		b, _ := v.Bool()
		return w.add(strconv.FormatBool(b))
	case codec.KindString, codec.KindSymbol:
		s, _ := v.Str()
		return w.text(s)
	case codec.KindBinary:
		b, _ := v.Bytes()
		return len(w.dst)+base64.StdEncoding.EncodedLen(len(b)) <= w.most && w.text(Text(v))
	case codec.KindTimestamp:
		t, _ := v.Time()
		return w.text(t.UTC().Format(time.RFC3339Nano))
	case codec.KindUUID:
		return w.text(Text(v))
	case codec.KindFloat, codec.KindDouble:
		f, _ := v.Float()
		b, err := json.Marshal(f)
		if err != nil {
			return w.text(fmt.Sprint(f)) // not a number, or without end
		}
		return w.add(string(b))
	case codec.KindList, codec.KindArray:
		return w.list(v)
	case codec.KindMap:
		return w.object(v)
	case codec.KindChar:
		c, _ := v.Char()
		return w.text(string(c))
	}
	if n, ok := v.Int(); ok {
		return w.add(strconv.FormatInt(n, 10))
	}
	if n, ok := v.Uint(); ok {
		return w.add(strconv.FormatUint(n, 10))
	}
	return w.text(v.String())
}

func (w *writer) list(v codec.Value) bool {
	between := "["
	for e := range v.List() {
		if !w.add(between) || !w.value(e) {
			return false
		}
		between = ","
	}
	if between == "[" && !w.add("[") {
		return false
	}
	return w.add("]")
}

// object writes a map. A key that occurs twice does so in JSON: readers take the last.
func (w *writer) object(v codec.Value) bool {
	between := "{"
	for r := v.Elements(); r.More(); {
		key, val := r.Value(), r.Value()
		name, ok := key.Str()
		if !ok {
			name = key.String()
		}
		if !w.add(between) || !w.text(name) || !w.add(":") || !w.value(val) {
			return false
		}
		between = ","
	}
	if between == "{" && !w.add("{") {
		return false
	}
	return w.add("}")
}

// Parse reads a value from JSON.
func Parse(raw json.RawMessage) (codec.Value, error) {
	var v entity.Value
	if err := json.Unmarshal(raw, &v); err != nil {
		return codec.Value{}, err
	}
	switch x := v.Any().(type) {
	case string:
		return codec.String(x), nil
	case bool:
		return codec.Bool(x), nil
	case int32:
		return codec.Int(x), nil
	case int64:
		return codec.Long(x), nil
	case float64:
		return codec.Double(x), nil
	case time.Time:
		return codec.Timestamp(x), nil
	case time.Duration:
		return value.ToWire(value.MakeDuration(x)), nil
	}
	return codec.Value{}, nil
}

// UUID returns the text of an id in the byte order of RFC 9562.
func UUID(id [16]byte) string {
	b := make([]byte, 0, 36)
	for i, part := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, part)
	}
	return string(b)
}

// ParseUUID reads what UUID writes, in any case.
func ParseUUID(text string) (id [16]byte, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(text[:8]+text[9:13]+text[14:18]+text[19:23]+text[24:]))
	return id, err == nil
}
