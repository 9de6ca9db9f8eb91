// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Schema is a JSON Schema, in the words of OpenAPI 3.1.
type Schema struct {
	Ref         string             `json:"$ref,omitzero"`
	Type        string             `json:"type,omitzero"`
	Format      string             `json:"format,omitzero"`
	Description string             `json:"description,omitzero"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *Schema            `json:"additionalProperties,omitempty"`
	OneOf       []*Schema          `json:"oneOf,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
}

// Set gathers the schemas of Go types as encoding/json writes them.
type Set struct {
	ByName  map[string]*Schema
	Special map[reflect.Type]Schema // of types that write themselves, or have few values
	Names   map[reflect.Type]string // of types whose name is not that in Go
}

// Of returns the schema of a type; structs are kept by name and referred to.
func (ss *Set) Of(t reflect.Type) *Schema {
	if s, ok := ss.Special[t]; ok {
		return &s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ss.Of(t.Elem())
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer", Minimum: new(int)}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Slice:
		return &Schema{Type: "array", Items: ss.Of(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", Additional: ss.Of(t.Elem())}
	case reflect.Interface:
		return &Schema{}
	case reflect.Struct:
		return ss.object(t)
	}
	panic("schema: no schema for " + t.String()) // a mistake in the table of routes
}

func (ss *Set) object(t reflect.Type) *Schema {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t.Implements(reflect.TypeFor[json.Marshaler]()) {
		panic("schema: " + t.String() + " writes itself and is not in the table of such types")
	}
	name := ss.nameOf(t)
	ref := &Schema{Ref: "#/components/schemas/" + name}
	if _, known := ss.ByName[name]; known {
		return ref
	}
	s := &Schema{Type: "object", Properties: map[string]*Schema{}}
	ss.ByName[name] = s // before its fields, which may refer to it
	for _, f := range reflect.VisibleFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		// An embedded struct with a JSON name is a field; its own fields are not.
		if f.Anonymous && field == "" || !f.IsExported() || field == "-" || belowNamed(t, f.Index) {
			continue
		}
		s.Properties[field] = ss.Of(f.Type)
		if f.Type.Kind() == reflect.Pointer && options == "" { // it is always there, and may be null
			s.Properties[field] = &Schema{OneOf: []*Schema{ss.Of(f.Type), {Type: "null"}}}
		}
		if options == "" {
			s.Required = append(s.Required, field)
		}
	}
	slices.Sort(s.Required)
	return ref
}

// belowNamed reports whether a field is promoted from an embedded struct that
// has a JSON name.
func belowNamed(t reflect.Type, index []int) bool {
	for n := 1; n < len(index); n++ {
		if t.FieldByIndex(index[:n]).Tag.Get("json") != "" {
			return true
		}
	}
	return false
}

// nameOf names a type in the document. Pages and entities are named after what
// they are pages and entities of.
func (ss *Set) nameOf(t reflect.Type) string {
	if name, ok := ss.Names[t]; ok {
		return name
	}
	name := t.Name()
	of, parameter, generic := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	if !generic {
		return strings.ToUpper(name[:1]) + name[1:]
	}
	inner := parameter[strings.LastIndexAny(parameter, "./")+1:]
	inner = strings.TrimRight(inner, "]")
	if strings.Contains(parameter, "Entity[") {
		inner += "Entity"
	}
	return inner + strings.ToUpper(of[:1]) + of[1:]
}
