// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Value is a typed constant of a filter: a parameter of its SQL, or a property
// that a correlation filter compares. The zero Value is none.
type Value struct {
	// v is a string, bool, int32, int64, float64, time.Time (in UTC) or
	// time.Duration.
	v any
}

// ErrValue means that something is not a Value.
var ErrValue = errors.New("entity: bad value")

// valueTypes name the types as XML Schema does, which is how they travel.
const valueTypes = "string, boolean, int, long, double, dateTime, duration"

// NewValue returns v, which must be of one of the types that Any returns, or
// any other integer or float, as a Value.
func NewValue(v any) (Value, error) {
	switch v := v.(type) {
	case string, bool, int32, int64, float64:
		return Value{v}, nil
	case time.Duration:
		if v < 0 {
			return Value{}, fmt.Errorf("%w: a negative duration", ErrValue)
		}
		return Value{v}, nil
	case time.Time:
		if !hasText(v.UTC()) {
			return Value{}, fmt.Errorf("%w: a time in the year %d", ErrValue, v.UTC().Year())
		}
		return Value{v.UTC()}, nil
	case int:
		return Value{int64(v)}, nil
	case int8:
		return Value{int32(v)}, nil
	case int16:
		return Value{int32(v)}, nil
	case uint8:
		return Value{int32(v)}, nil
	case uint16:
		return Value{int32(v)}, nil
	case uint32:
		return Value{int64(v)}, nil
	case float32:
		return Value{float64(v)}, nil
	case Duration:
		return Value{v.Std()}, nil
	}
	return Value{}, fmt.Errorf("%w: a %T", ErrValue, v)
}

// ParseValue reads the text of a value of the named XML Schema type.
func ParseValue(typ, text string) (Value, error) {
	var v any
	var err error
	switch typ {
	case "string":
		v = text
	case "boolean":
		v, err = strconv.ParseBool(text)
	case "int":
		var n int64
		n, err = strconv.ParseInt(text, 10, 32)
		v = int32(n)
	case "long":
		v, err = strconv.ParseInt(text, 10, 64)
	case "double":
		v, err = parseDouble(text)
	case "dateTime":
		v, err = parseTime(text)
	case "duration":
		var d Duration
		d, err = ParseDuration(text)
		v = d.Std()
	default:
		return Value{}, fmt.Errorf("%w: type %q is not one of %s", ErrValue, typ, valueTypes)
	}
	if err != nil {
		return Value{}, fmt.Errorf("%w: %q is not of type %s", ErrValue, text, typ)
	}
	return Value{v}, nil
}

// parseDouble also reads the infinity of XML Schema; NaN equals nothing, itself
// included, and is no use in a filter.
func parseDouble(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && f != f {
		return 0, strconv.ErrSyntax
	}
	return f, err
}

// parseTime reads RFC 3339; .NET leaves the zone out for a time of no kind,
// which is UTC to us.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05.999999999", text)
	}
	if t = t.UTC(); err == nil && !hasText(t) { // by its zone it is in another year
		err = strconv.ErrRange
	}
	return t, err
}

// hasText reports whether a time can be written as RFC 3339, which has four digits for the
// year.
func hasText(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// Any returns the value as a string, bool, int32, int64, float64, time.Time,
// time.Duration, or nil for the zero Value.
func (v Value) Any() any { return v.v }

// Type returns the name of the value's type in XML Schema.
func (v Value) Type() string {
	switch v.v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case int32:
		return "int"
	case int64:
		return "long"
	case float64:
		return "double"
	case time.Time:
		return "dateTime"
	case time.Duration:
		return "duration"
	}
	return ""
}

// String returns the text that ParseValue reads.
func (v Value) String() string {
	switch v := v.v.(type) {
	case nil:
		return ""
	case float64:
		return strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case time.Duration:
		return Duration(v).ISO()
	default:
		return fmt.Sprint(v)
	}
}

// typedValue is the JSON of a value whose type plain JSON would lose.
type typedValue struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// MarshalJSON writes strings, booleans and longs as they are, and the others
// with their type: {"type": "int", "value": "5"}.
func (v Value) MarshalJSON() ([]byte, error) {
	switch v.v.(type) {
	case nil, string, bool, int64:
		return json.Marshal(v.v)
	}
	return json.Marshal(typedValue{v.Type(), v.String()})
}

// UnmarshalJSON reads what MarshalJSON writes; a plain number with a fraction or
// an exponent is a double.
func (v *Value) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) == 0 {
		return fmt.Errorf("%w: nothing", ErrValue)
	}
	var err error
	switch data[0] {
	case '{':
		var typed typedValue
		if err = json.Unmarshal(data, &typed); err == nil {
			*v, err = ParseValue(typed.Type, typed.Value)
		}
	case '"':
		var text string
		err = json.Unmarshal(data, &text)
		*v = Value{text}
	case 't', 'f':
		var b bool
		err = json.Unmarshal(data, &b)
		*v = Value{b}
	case 'n':
		*v = Value{}
	case '[':
		return fmt.Errorf("%w: a list", ErrValue)
	default:
		typ := "long"
		if bytes.ContainsAny(data, ".eE") {
			typ = "double"
		}
		*v, err = ParseValue(typ, string(data))
	}
	return err
}
