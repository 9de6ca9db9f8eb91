// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/objective"
)

// schema is a JSON Schema, in the words of OpenAPI 3.1.
type schema struct {
	Ref         string             `json:"$ref,omitzero"`
	Type        string             `json:"type,omitzero"`
	Format      string             `json:"format,omitzero"`
	Description string             `json:"description,omitzero"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *schema            `json:"additionalProperties,omitempty"`
	OneOf       []*schema          `json:"oneOf,omitempty"`
	Minimum     *int               `json:"minimum,omitempty"`
}

// schemas gathers the schemas of Go types as encoding/json writes them.
type schemas map[string]*schema

// enums are the types whose values are few.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[entity.Status]():     {string(entity.Active), string(entity.Disabled), string(entity.SendDisabled), string(entity.ReceiveDisabled)},
	reflect.TypeFor[entity.Right]():      {string(entity.Send), string(entity.Listen), string(entity.Manage)},
	reflect.TypeFor[entity.FilterKind](): {string(entity.SQLFilter), string(entity.CorrelationFilter), string(entity.TrueFilter), string(entity.FalseFilter)},
	reflect.TypeFor[BodyType]():          {string(BodyText), string(BodyBase64), string(BodyJSON)},
	reflect.TypeFor[objective.State](): {objective.NoObjective.String(), objective.Met.String(), objective.AtRisk.String(),
		objective.Missed.String()},
}

// special are the types that write themselves.
var special = map[reflect.Type]schema{
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[entity.Duration](): {Type: "string", Description: "A duration such as 30s, 5m, 14d, PT5M or forever."},
	reflect.TypeFor[entity.Value]():    {Description: `A string, boolean or number, or one with its type: {"type": "int", "value": "5"}.`},
	reflect.TypeFor[json.RawMessage](): {Description: "Any JSON."},
}

// of returns the schema of a type; structs are kept by name and referred to.
func (ss schemas) of(t reflect.Type) *schema {
	if s, ok := special[t]; ok {
		return &s
	}
	if values, ok := enums[t]; ok {
		return &schema{Type: "string", Enum: values}
	}
	if t == reflect.TypeFor[Batch]() {
		one := ss.of(reflect.TypeFor[Outgoing]())
		return &schema{OneOf: []*schema{one, {Type: "array", Items: one}}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ss.of(t.Elem())
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: "integer", Minimum: new(int)}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &schema{Type: "integer"}
	case reflect.Slice:
		return &schema{Type: "array", Items: ss.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", Additional: ss.of(t.Elem())}
	case reflect.Interface:
		return &schema{}
	case reflect.Struct:
		return ss.object(t)
	}
	panic("admin: no schema for " + t.String()) // a mistake in the table of routes
}

func (ss schemas) object(t reflect.Type) *schema {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t.Implements(reflect.TypeFor[json.Marshaler]()) {
		panic("admin: " + t.String() + " writes itself and is not in the table of such types")
	}
	name := nameOf(t)
	ref := &schema{Ref: "#/components/schemas/" + name}
	if _, known := ss[name]; known {
		return ref
	}
	s := &schema{Type: "object", Properties: map[string]*schema{}}
	ss[name] = s // before its fields, which may refer to it
	for _, f := range reflect.VisibleFields(t) {
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		// An embedded struct with a JSON name is a field; its own fields are not.
		if f.Anonymous && field == "" || !f.IsExported() || field == "-" || belowNamed(t, f.Index) {
			continue
		}
		s.Properties[field] = ss.of(f.Type)
		if f.Type.Kind() == reflect.Pointer && options == "" { // it is always there, and may be null
			s.Properties[field] = &schema{OneOf: []*schema{ss.of(f.Type), {Type: "null"}}}
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

// schemaNames are the types whose names in the document are not those in Go: clients
// are generated from the document, so its names stay.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[broker.Redriven]():   "Redriven",
	reflect.TypeFor[broker.Transition](): "Shift",
	reflect.TypeFor[broker.ClassLevel](): "Place",
	reflect.TypeFor[broker.Boost]():      "Lifted",
	reflect.TypeFor[broker.RuleMatch]():  "Trial",
}

// nameOf names a type in the document. Pages and entities are named after what
// they are pages and entities of.
func nameOf(t reflect.Type) string {
	if name, ok := schemaNames[t]; ok {
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
