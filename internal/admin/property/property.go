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
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
)

// JSON returns a value as encoding/json writes it.
func JSON(v codec.Value) any {
	switch v.Kind() {
	case codec.KindNull:
		return nil
	case codec.KindBool:
		b, _ := v.Bool()
		return b
	case codec.KindString, codec.KindSymbol:
		s, _ := v.Str()
		return s
	case codec.KindBinary:
		b, _ := v.Bytes()
		return base64.StdEncoding.EncodeToString(b)
	case codec.KindTimestamp:
		t, _ := v.Time()
		return t.UTC().Format(time.RFC3339Nano)
	case codec.KindUUID:
		id, _ := v.UUID()
		return UUID(id)
	case codec.KindFloat, codec.KindDouble:
		f, _ := v.Float()
		if _, err := json.Marshal(f); err != nil {
			return fmt.Sprint(f) // not a number, or without end
		}
		return f
	case codec.KindList, codec.KindArray:
		list := []any{}
		for e := range v.List() {
			list = append(list, JSON(e))
		}
		return list
	case codec.KindMap:
		return object(v)
	case codec.KindChar:
		c, _ := v.Char()
		return string(c)
	}
	if n, ok := v.Int(); ok {
		return n
	}
	if n, ok := v.Uint(); ok {
		return n
	}
	return v.String()
}

func object(v codec.Value) map[string]any {
	m := map[string]any{}
	for r := v.Elements(); r.More(); {
		key, value := r.Value(), r.Value()
		name, ok := key.Str()
		if !ok {
			name = key.String()
		}
		m[name] = JSON(value)
	}
	return m
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
		return filter.ToWire(filter.DurationValue(x)), nil
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
