// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/entity"
)

const elementRule = "RuleDescription"

// The types of filters and actions. They are on the wire and never change.
const (
	typeSQL         = "SqlFilter"
	typeCorrelation = "CorrelationFilter"
	typeTrue        = "TrueFilter"
	typeFalse       = "FalseFilter"
	typeAction      = "SqlRuleAction"
	typeNoAction    = "EmptyRuleAction"

	compatibilityLevel = "20"
)

// filterTypes are the kinds of filter under the names they have on the wire.
var filterTypes = map[entity.FilterKind]string{
	entity.SQLFilter:         typeSQL,
	entity.CorrelationFilter: typeCorrelation,
	entity.TrueFilter:        typeTrue,
	entity.FalseFilter:       typeFalse,
}

// readRule reads a rule. Its name is in the path, else in the description, else
// it is the default rule's name.
func readRule(name string, d *element) (entity.Rule, error) {
	r := reader{element: d}
	rule := entity.Rule{Name: name}
	if name == "" {
		r.str("Name", &rule.Name)
		rule.Name = cmp.Or(rule.Name, entity.DefaultRule)
	}
	var err error
	if rule.Filter, err = readFilter(d.child("Filter")); err != nil {
		return rule, err
	}
	rule.Action, err = readAction(d.child("Action"))
	return rule, err
}

func readFilter(e *element) (entity.Filter, error) {
	if e == nil || e.null {
		return entity.Filter{Kind: entity.TrueFilter}, nil
	}
	r := reader{element: e}
	var f entity.Filter
	var err error
	switch e.kind {
	case typeTrue:
		f.Kind = entity.TrueFilter
	case typeFalse:
		f.Kind = entity.FalseFilter
	case typeSQL:
		f.Kind = entity.SQLFilter
		r.str("SqlExpression", &f.SQL)
		f.Parameters, err = readValues(e.child("Parameters"))
	case typeCorrelation:
		f.Kind = entity.CorrelationFilter
		c := new(entity.Correlation)
		r.str("CorrelationId", &c.CorrelationID)
		r.str("MessageId", &c.MessageID)
		r.str("To", &c.To)
		r.str("ReplyTo", &c.ReplyTo)
		r.str("Label", &c.Label)
		r.str("SessionId", &c.SessionID)
		r.str("ReplyToSessionId", &c.ReplyToSessionID)
		r.str("ContentType", &c.ContentType)
		c.Properties, err = readValues(e.child("Properties"))
		f.Correlation = c
	default:
		return f, problem.Bad("The filter type %q is none of %s, %s, %s, %s.", e.kind, typeSQL, typeCorrelation, typeTrue, typeFalse)
	}
	return f, err
}

func readAction(e *element) (entity.Action, error) {
	if e == nil || e.null {
		return entity.Action{}, nil
	}
	switch e.kind {
	case typeNoAction, "":
		return entity.Action{}, nil
	case typeAction:
		var a entity.Action
		r := reader{element: e}
		r.str("SqlExpression", &a.SQL)
		if a.SQL == "" {
			return a, problem.Bad("The action has no SqlExpression.")
		}
		var err error
		a.Parameters, err = readValues(e.child("Parameters"))
		return a, err
	}
	return entity.Action{}, problem.Bad("The action type %q is neither %s nor %s.", e.kind, typeAction, typeNoAction)
}

// readValues reads the typed constants of a filter or action.
func readValues(e *element) (map[string]entity.Value, error) {
	pairs := e.all("KeyValueOfstringanyType")
	if len(pairs) == 0 {
		return nil, nil
	}
	values := make(map[string]entity.Value, len(pairs))
	for _, pair := range pairs {
		key, value := pair.child("Key"), pair.child("Value")
		if key == nil || value == nil || key.text() == "" {
			return nil, problem.Bad("A KeyValueOfstringanyType needs a Key and a Value.")
		}
		v, err := entity.ParseValue(cmp.Or(value.kind, "string"), value.text())
		if err != nil {
			return nil, problem.Bad("The value of %q: %v.", key.text(), err)
		}
		values[key.text()] = v
	}
	return values, nil
}

func (w *writer) rule(rule entity.Rule) {
	w.describe(elementRule)
	w.filter(rule.Filter)
	w.action(rule.Action)
	w.instant("CreatedAt", rule.CreatedAt)
	w.leaf("Name", rule.Name)
	w.close(elementRule)
}

func (w *writer) filter(f entity.Filter) {
	w.open("Filter", attr{"i:type", filterTypes[f.Kind]})
	switch f.Kind {
	case entity.TrueFilter:
		w.sql("1=1", nil)
	case entity.FalseFilter:
		w.sql("1=0", nil)
	case entity.SQLFilter:
		w.sql(f.SQL, f.Parameters)
	case entity.CorrelationFilter:
		c := f.Correlation
		w.given("CorrelationId", c.CorrelationID)
		w.given("MessageId", c.MessageID)
		w.given("To", c.To)
		w.given("ReplyTo", c.ReplyTo)
		w.given("Label", c.Label)
		w.given("SessionId", c.SessionID)
		w.given("ReplyToSessionId", c.ReplyToSessionID)
		w.given("ContentType", c.ContentType)
		w.values("Properties", c.Properties)
	}
	w.close("Filter")
}

// action writes an action. The element must be present even if there is no
// action: the Go client reads its type without a check.
func (w *writer) action(a entity.Action) {
	if a.SQL == "" {
		w.leaf("Action", "", attr{"i:type", typeNoAction})
		return
	}
	w.open("Action", attr{"i:type", typeAction})
	w.sql(a.SQL, a.Parameters)
	w.close("Action")
}

func (w *writer) sql(text string, parameters map[string]entity.Value) {
	w.leaf("SqlExpression", text)
	w.leaf("CompatibilityLevel", compatibilityLevel)
	w.values("Parameters", parameters)
}

// values writes typed constants. JavaScript takes the type's name to begin at its
// sixth character, so the prefix has to have four.
func (w *writer) values(name string, values map[string]entity.Value) {
	if len(values) == 0 {
		return
	}
	w.open(name)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		w.open("KeyValueOfstringanyType")
		w.leaf("Key", key)
		w.leaf("Value", values[key].String(), attr{"xmlns:d6p1", nsSchema}, attr{"i:type", "d6p1:" + typeOf(values[key])})
		w.close("KeyValueOfstringanyType")
	}
	w.close(name)
}

// typeOf names the type of a value. Neither the Go nor the JavaScript client reads
// a long, so it is one only where an int would not do.
func typeOf(v entity.Value) string {
	if n, ok := v.Any().(int64); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
		return "int"
	}
	return v.Type()
}
