// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"maps"
	"reflect"
	"time"

	"github.com/triagemq/triagemq/internal/admin/schema"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/objective"
)

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
var special = map[reflect.Type]schema.Schema{
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[entity.Duration](): {Type: "string", Description: "A duration such as 30s, 5m, 14d, PT5M or forever."},
	reflect.TypeFor[entity.Value]():    {Description: `A string, boolean or number, or one with its type: {"type": "int", "value": "5"}.`},
	reflect.TypeFor[json.RawMessage](): {Description: "Any JSON."},
}

// schemaNames are the types whose names in the document are not those in Go: clients
// are generated from the document, so its names stay.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[broker.Redriven]():   "Redriven",
	reflect.TypeFor[broker.Transition](): "Shift",
	reflect.TypeFor[broker.ClassLevel](): "Place",
	reflect.TypeFor[broker.Boost]():      "Lifted",
	reflect.TypeFor[broker.RuleMatch]():  "Trial",

	reflect.TypeFor[broker.PoolInstance](): "PoolInstance",
}

// newSchemas returns an empty set that knows the types of the API.
func newSchemas() *schema.Set {
	ss := &schema.Set{ByName: map[string]*schema.Schema{}, Special: maps.Clone(special), Names: schemaNames}
	for t, values := range enums {
		ss.Special[t] = schema.Schema{Type: "string", Enum: values}
	}
	one := ss.Of(reflect.TypeFor[Outgoing]())
	ss.Special[reflect.TypeFor[Batch]()] = schema.Schema{OneOf: []*schema.Schema{one, {Type: "array", Items: one}}}
	return ss
}
