// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// Descriptors of rules. The widths differ, as they do in the clients.
const (
	codeRule              = 0x13700000004
	codeSQLFilter         = 0x1370000006
	codeTrueFilter        = 0x1370000007
	codeFalseFilter       = 0x1370000008
	codeCorrelationFilter = 0x1370000009
	codeEmptyAction       = 0x13700000005
	codeSQLAction         = 0x13700000006
)

// sqlLevel is the version of the filter language that the service reports.
const sqlLevel = 20

// subscription returns the topic and subscription that the request is about.
func (k *call) subscription() (topic, name string, err error) {
	p, err := entity.ParsePath(k.Entity())
	if err != nil || p.Subscription == "" {
		return "", "", endpoint.Errorf(endpoint.CondNotAllowed, "Only subscriptions have rules.")
	}
	return p.Entity, p.Subscription, nil
}

func addRule(ctx context.Context, k *call) (codec.Value, error) {
	topic, sub, err := k.subscription()
	if err != nil {
		return codec.Value{}, err
	}
	name, err := k.MustText("rule-name")
	if err != nil {
		return codec.Value{}, err
	}
	description, _ := k.Body().Lookup("rule-description")
	rule, err := ruleIn(strings.Clone(name), description)
	if err != nil {
		return codec.Value{}, err
	}
	_, err = k.broker.CreateRule(k.change(ctx, topic), topic, sub, rule)
	return wire.Done, err
}

// change is the context of a change of a topic. Who may change its rules takes turns with the
// others who may.
func (k *call) change(ctx context.Context, topic string) context.Context {
	return broker.By(broker.Guard(ctx, k.Still), entity.Key(topic))
}

func removeRule(ctx context.Context, k *call) (codec.Value, error) {
	topic, sub, err := k.subscription()
	if err != nil {
		return codec.Value{}, err
	}
	name, err := k.MustText("rule-name")
	if err != nil {
		return codec.Value{}, err
	}
	return wire.Done, k.broker.DeleteRule(k.change(ctx, topic), topic, sub, name)
}

func enumerateRules(_ context.Context, k *call) (codec.Value, error) {
	topic, sub, err := k.subscription()
	if err != nil {
		return codec.Value{}, err
	}
	skip, top, err := k.page()
	if err != nil {
		return codec.Value{}, err
	}
	rules, err := k.broker.Rules(topic, sub)
	if err != nil {
		return codec.Value{}, err
	}
	rules = rules[min(skip, len(rules)):]
	rules = rules[:min(top, len(rules))]
	if len(rules) == 0 {
		return codec.Value{}, nil
	}
	b, whole := codec.BeginMap(k.BeginReply(len(rules) * perMessage))
	b, list := codec.BeginList(codec.AppendString(b, "rules"))
	for _, r := range rules {
		b = codec.AppendValue(b, wire.Result("rule-description", describeRule(r)))
	}
	return k.EndReply(codec.EndMap(codec.EndList(b, list, len(rules)), whole, 1)), nil
}

// ruleIn reads the map that describes a rule, and copies what it keeps.
func ruleIn(name string, description codec.Value) (entity.Rule, error) {
	r := entity.Rule{Name: name}
	textIn := func(v codec.Value, key string) string {
		f, _ := v.Lookup(key)
		s, _ := f.Str()
		return strings.Clone(s)
	}
	if v, ok := description.Lookup("sql-filter"); ok && !v.IsNull() {
		r.Filter.SQL = textIn(v, "expression")
	}
	if v, ok := description.Lookup("correlation-filter"); ok && !v.IsNull() {
		f := &entity.Correlation{
			CorrelationID:    textIn(v, "correlation-id"),
			MessageID:        textIn(v, "message-id"),
			To:               textIn(v, "to"),
			ReplyTo:          textIn(v, "reply-to"),
			Label:            textIn(v, "label"),
			SessionID:        textIn(v, "session-id"),
			ReplyToSessionID: textIn(v, "reply-to-session-id"),
			ContentType:      textIn(v, "content-type"),
		}
		properties, _ := v.Lookup("properties")
		var err error
		if f.Properties, err = constantsIn(properties); err != nil {
			return r, err
		}
		r.Filter.Correlation = f
	}
	if v, ok := description.Lookup("sql-rule-action"); ok && !v.IsNull() {
		r.Action.SQL = textIn(v, "expression")
	}
	return r, nil
}

// constantsIn reads the properties that a correlation filter compares.
func constantsIn(v codec.Value) (map[string]entity.Value, error) {
	var m map[string]entity.Value
	for key, value := range v.Map() {
		name, ok := key.Str()
		c, err := constantOf(value)
		if !ok || err != nil {
			return nil, azure.BadArgument("properties", "a map of strings to simple values")
		}
		if len(m) == limits.RuleValues {
			return nil, azure.BadArgument("properties", fmt.Sprintf("a map of at most %d values", limits.RuleValues))
		}
		if m == nil {
			m = map[string]entity.Value{}
		}
		m[strings.Clone(name)] = c
	}
	return m, nil
}

func constantOf(v codec.Value) (entity.Value, error) {
	switch v.Kind() {
	case codec.KindString, codec.KindSymbol:
		s, _ := v.Str()
		return entity.NewValue(strings.Clone(s))
	case codec.KindBool:
		b, _ := v.Bool()
		return entity.NewValue(b)
	case codec.KindTimestamp:
		t, _ := v.Time()
		return entity.NewValue(t)
	case codec.KindFloat, codec.KindDouble:
		f, _ := v.Float()
		return entity.NewValue(f)
	case codec.KindInt:
		n, _ := v.Int()
		return entity.NewValue(int32(n))
	}
	if n, ok := v.Int(); ok {
		return entity.NewValue(n)
	}
	return entity.Value{}, entity.ErrValue
}

// describeRule encodes a rule as clients expect it: a described list with the
// filter, the action, which must be there even if it does nothing, and the name.
func describeRule(r entity.Rule) codec.Value {
	action := codec.Describe(codeEmptyAction, codec.List())
	if r.Action.SQL != "" {
		action = codec.Describe(codeSQLAction, codec.List(codec.String(r.Action.SQL), codec.Int(sqlLevel)))
	}
	return codec.Describe(codeRule, codec.List(describeFilter(r.WithDefaults().Filter), action, codec.String(r.Name)))
}

func describeFilter(f entity.Filter) codec.Value {
	switch f.Kind {
	case entity.TrueFilter:
		return codec.Describe(codeTrueFilter, codec.List())
	case entity.FalseFilter:
		return codec.Describe(codeFalseFilter, codec.List())
	case entity.CorrelationFilter:
		c := f.Correlation
		return codec.Describe(codeCorrelationFilter, codec.List(
			textOrNull(c.CorrelationID), textOrNull(c.MessageID), textOrNull(c.To), textOrNull(c.ReplyTo),
			textOrNull(c.Label), textOrNull(c.SessionID), textOrNull(c.ReplyToSessionID), textOrNull(c.ContentType),
			describeConstants(c.Properties)))
	}
	return codec.Describe(codeSQLFilter, codec.List(codec.String(f.SQL), codec.Int(sqlLevel)))
}

func textOrNull(s string) codec.Value {
	if s == "" {
		return codec.Value{}
	}
	return codec.String(s)
}

func describeConstants(m map[string]entity.Value) codec.Value {
	var pairs []codec.Value
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, codec.String(name), describeConstant(m[name]))
	}
	return codec.Map(pairs...)
}

func describeConstant(v entity.Value) codec.Value {
	switch v := v.Any().(type) {
	case string:
		return codec.String(v)
	case bool:
		return codec.Bool(v)
	case int32:
		return codec.Int(v)
	case int64:
		return codec.Long(v)
	case float64:
		return codec.Double(v)
	case time.Time:
		return codec.Timestamp(v)
	case time.Duration:
		return codec.String(entity.Duration(v).ISO())
	}
	return codec.Value{}
}
