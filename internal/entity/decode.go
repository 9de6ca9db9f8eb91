// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// UnknownFields says what is made of fields of a JSON text that the target does not have.
type UnknownFields bool

// The ways.
const (
	RefuseUnknown UnknownFields = false
	IgnoreUnknown UnknownFields = true
)

// DecodeJSON reads a JSON text into the value that to points to, as
// [json.Unmarshal] does, and does not stop at a fault: it reads what can be
// read, and returns every invalid value, and every unknown field if those are
// not allowed, with its path. The error is for a text that is not JSON at all.
//
// It reads each value once for each level of the target's type, which is slow.
// It is meant for faulty texts; json.Unmarshal is the faster way to find out
// that there is no fault.
func DecodeJSON(text []byte, to any, unknown UnknownFields) (Faults, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	d := jsonDecoder{unknown: unknown, types: map[reflect.Type][]jsonField{}}
	d.value("", whole, reflect.ValueOf(to).Elem())
	return d.faults, nil
}

type jsonDecoder struct {
	faults  Faults
	unknown UnknownFields
	types   map[reflect.Type][]jsonField // the fields of the structs so far
}

func (d *jsonDecoder) addf(path, format string, args ...any) {
	d.faults.addf(path, format, args...)
}

func (d *jsonDecoder) value(path string, text json.RawMessage, to reflect.Value) {
	text = bytes.TrimSpace(text)
	_, reads := to.Addr().Interface().(json.Unmarshaler)
	_, readsText := to.Addr().Interface().(encoding.TextUnmarshaler)
	switch kind := to.Kind(); {
	case reads || readsText:
	case kind == reflect.Pointer && string(text) != "null":
		to.Set(reflect.New(to.Type().Elem()))
		d.value(path, text, to.Elem())
		return
	case kind == reflect.Struct && text[0] == '{':
		d.object(path, text, to)
		return
	case kind == reflect.Slice && text[0] == '[':
		d.list(path, text, to)
		return
	case kind == reflect.Map && text[0] == '{':
		d.mapping(path, text, to)
		return
	}
	// Our own errors are reported without the words of encoding/json around them.
	err := json.Unmarshal(text, to.Addr().Interface())
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		d.addf(path, "expected %s, found %s", kindName(wrong.Type), valueName(wrong.Value))
	} else if err != nil {
		d.addf(path, "%s", strings.TrimPrefix(Reason(err), "json: "))
	}
}

// valueName names what encoding/json has found.
func valueName(found string) string {
	switch found {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	case "number":
		return "a number"
	}
	return strings.TrimPrefix(found, "number ")
}

// kindName names what a type takes.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint8:
		return "a whole number from 0 to 255"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of %d bits", t.Bits())
	}
	return "a text"
}

// object reads the fields of a struct in the order of the text.
func (d *jsonDecoder) object(path string, text json.RawMessage, to reflect.Value) {
	fields, ok := d.types[to.Type()]
	if !ok {
		fields = jsonFields(to.Type())
		d.types[to.Type()] = fields
	}
	each(text, func(key string, value json.RawMessage) bool {
		at := joinField(path, key)
		if path == "" {
			at = key
		}
		i := slices.IndexFunc(fields, func(f jsonField) bool { return f.name == key })
		if i < 0 {
			i = slices.IndexFunc(fields, func(f jsonField) bool { return strings.EqualFold(f.name, key) })
		}
		switch {
		case i >= 0:
			d.value(at, value, to.FieldByIndex(fields[i].index))
		case d.unknown == RefuseUnknown:
			d.addf(at, "unknown field%s", meant(key, fields))
		}
		return !d.faults.full()
	})
}

// each calls fn for the members of an object, until it returns false.
func each(object json.RawMessage, fn func(key string, value json.RawMessage) bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token() // the brace; the text was read before
	for d.More() {
		key, _ := d.Token()
		var value json.RawMessage
		if name, ok := key.(string); !ok || d.Decode(&value) != nil || !fn(name, value) {
			return
		}
	}
}

func (d *jsonDecoder) list(path string, text json.RawMessage, to reflect.Value) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	_, _ = decoder.Token() // the bracket; the text was read before
	to.Set(reflect.MakeSlice(to.Type(), 0, 0))
	for i := 0; decoder.More() && !d.faults.full(); i++ {
		var item json.RawMessage
		if decoder.Decode(&item) != nil {
			return
		}
		v := reflect.New(to.Type().Elem()).Elem()
		d.value(fmt.Sprintf("%s[%d]", path, i), item, v)
		to.Set(reflect.Append(to, v))
	}
}

func (d *jsonDecoder) mapping(path string, text json.RawMessage, to reflect.Value) {
	to.Set(reflect.MakeMap(to.Type()))
	each(text, func(key string, value json.RawMessage) bool {
		v := reflect.New(to.Type().Elem()).Elem()
		d.value(joinField(path, key), value, v)
		to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), v)
		return !d.faults.full()
	})
}

// jsonField is a field of a struct under its name in JSON.
type jsonField struct {
	name  string
	index []int
}

func jsonFields(t reflect.Type) []jsonField {
	var fields []jsonField
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		if name != "" && name != "-" && f.IsExported() {
			fields = append(fields, jsonField{name, f.Index})
		}
	}
	return fields
}

// meant suggests the field that was probably meant.
func meant(key string, fields []jsonField) string {
	const longest = 64 // of a name that is compared
	for _, f := range fields {
		if strings.EqualFold(f.name, key) || len(key) <= longest && oneSlip(strings.ToLower(f.name), strings.ToLower(key)) {
			return "; did you mean " + f.name + "?"
		}
	}
	return ""
}

// oneSlip reports whether one letter is added, left out or another one, or two
// are swapped.
func oneSlip(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	for i := range len(b) {
		if a[i] == b[i] {
			continue
		}
		return a[i+1:] == b[i:] || a[i+1:] == b[i+1:] ||
			i+1 < len(b) && len(a) == len(b) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	}
	return len(a)-len(b) == 1
}
