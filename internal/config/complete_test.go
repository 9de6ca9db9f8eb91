// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
)

// The tests in this file fill whole structs, so that a new field that is
// missing in one of the tables is noticed.

// fill sets every field below v to a distinct value that passes the checks of
// entities. Fields that are still zero are of a kind it does not support.
func fill(t *testing.T, v reflect.Value, next *int) {
	t.Helper()
	*next++
	switch target := v.Addr().Interface().(type) {
	case *entity.Duration: // between what the shortest and the longest property allow
		*target = entity.Duration(300e9 - *next)
		return
	case *entity.Status:
		*target = entity.SendDisabled
		return
	case *json.RawMessage:
		*target = json.RawMessage(fmt.Sprintf(`{"n":%d}`, *next))
		return
	case *[]string:
		*target = []string{fmt.Sprintf("localhost:%d", *next)}
		return
	case *source, **entity.Rule, *[]entity.Rule, *[]entity.Queue, *[]Topic, *[]entity.Hub:
		return
	case *[]entity.ConsumerGroup:
		*target = []entity.ConsumerGroup{{Name: fmt.Sprint("g", *next), UserMetadata: fmt.Sprint("of ", *next)}}
		return
	case *entity.AuthorizationRules:
		*target = entity.AuthorizationRules{{KeyName: fmt.Sprint("k", *next), Rights: []entity.Right{entity.Send}, PrimaryKey: "p"}}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("name-", *next))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(600 + *next))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem())) // false, where the default is true
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field, next)
		}
	default:
		t.Fatalf("fill does not know %v", v.Type())
	}
}

func TestEveryPropertyHasItsKey(t *testing.T) {
	var q entity.Queue
	var topic entity.Topic
	var s entity.Subscription
	var h entity.Hub
	next := 0
	for _, v := range []any{&q, &topic, &s, &h} {
		fill(t, reflect.ValueOf(v).Elem(), &next)
	}
	q.RequiresSession, s.RequiresSession = false, false // neither is allowed with forwarding
	q.AutoDeleteOnIdle, topic.AutoDeleteOnIdle, s.AutoDeleteOnIdle = 400e9, 401e9, 402e9

	// JSON is YAML too.
	text := fmt.Sprintf(`{"queues": [%s], "topics": [%s, {"name": "of-s", "subscriptions": [%s]}], "hubs": [%s]}`, encode(t, q), encode(t, topic), encode(t, s), encode(t, h))
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	for _, pair := range [][2]any{{c.Queues[0], q}, {c.Topics[0].Topic, topic}, {c.Topics[1].Subscriptions[0], s}, {c.Hubs[0], h}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("read as\n%s, want\n%s", encode(t, pair[0]), encode(t, pair[1]))
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSwitchesHaveTheirKeys turns on one switch at a time: when all are on, one
// that sets the wrong field is not noticed.
func TestSwitchesHaveTheirKeys(t *testing.T) {
	for _, empty := range []any{entity.Queue{Name: "e"}, entity.Topic{Name: "e"}, entity.Subscription{Name: "e"}} {
		for i := range reflect.TypeOf(empty).NumField() {
			v := reflect.New(reflect.TypeOf(empty)).Elem()
			v.Set(reflect.ValueOf(empty))
			if v.Field(i).Kind() != reflect.Bool {
				continue
			}
			v.Field(i).SetBool(true)
			if got := parseOne(t, v.Interface()); !reflect.DeepEqual(got, v.Interface()) {
				t.Errorf("read as\n%s, want\n%s", encode(t, got), encode(t, v.Interface()))
			}
		}
	}
}

// parseOne writes a definition into a file and reads it back.
func parseOne(t *testing.T, definition any) any {
	t.Helper()
	form := map[reflect.Type]string{
		reflect.TypeFor[entity.Queue]():        `{"queues": [%s]}`,
		reflect.TypeFor[entity.Topic]():        `{"topics": [%s]}`,
		reflect.TypeFor[entity.Subscription](): `{"topics": [{"name": "t", "subscriptions": [%s]}]}`,
	}[reflect.TypeOf(definition)]
	c, err := Parse(fmt.Appendf(nil, form, encode(t, definition)))
	if err != nil {
		t.Fatal(err)
	}
	switch definition.(type) {
	case entity.Queue:
		return c.Queues[0]
	case entity.Topic:
		return c.Topics[0].Topic
	}
	return c.Topics[0].Subscriptions[0]
}

func TestMergeKnowsEverySetting(t *testing.T) {
	var full Config
	next := 0
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			fill(t, v.Field(i), &next)
		}
	}
	full.Queues, full.Topics, full.Hubs = []entity.Queue{{Name: "q"}}, []Topic{}, []entity.Hub{{Name: "h"}}
	if got := (Config{}).Merge(full); !reflect.DeepEqual(got, full) {
		t.Errorf("nothing, merged with everything, is\n%+v, want\n%+v", got, full)
	}
	if got := full.Merge(Config{}); !reflect.DeepEqual(got, full) {
		t.Errorf("everything, merged with nothing, is\n%+v, want\n%+v", got, full)
	}
}
