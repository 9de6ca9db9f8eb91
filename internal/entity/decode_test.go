// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What has no fault is read as json.Unmarshal reads it.
func TestDecodeJSONReadsAsUnmarshalDoes(t *testing.T) {
	for _, text := range []string{
		`{}`, `null`, ` { "name" : "n" , "NAME" : "last" } `,
		`{"name":"s","lockDuration":"PT1M","status":"disabled","enableBatchedOperations":false,"policy":null,"rules":[]}`,
		`{"enableBatchedOperations":null,"rules":null,"defaultRule":null,"policy":{"a":[1,2]},"maxDeliveryCount":7}`,
		`{"rules":[{"name":"a","filter":{"kind":"correlation","correlation":{"to":"x","properties":{"n":1,"d":1.5,"t":{"type":"int","value":"5"}}}}},{}],
		  "defaultRule":{"filter":{"sql":"a=@b","parameters":{"b":"c"}},"action":{"sql":"REMOVE a"}}}`,
	} {
		var want, got Subscription
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		faults, err := DecodeJSON([]byte(text), &got, RefuseUnknown)
		if err != nil || faults != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nread as %+v, %v, %v\nwant    %+v", text, got, faults, err, want)
		}
	}
}

func TestDecodeJSONNamesEveryFault(t *testing.T) {
	const text = `{"name":5,"lockDuraton":"1m","lockDuration":"soon","maxDeliveryCount":1.5,"requiresSession":"yes",
		"rules":[{"name":"a","filtre":1},7,{"filter":{"parameters":{"p":{"type":"x"}}}}],"defaultRule":[],"extra":{"a":1}}`
	var s Subscription
	faults, err := DecodeJSON([]byte(text), &s, RefuseUnknown)
	const want = `name: expected a text, found a number
lockDuraton: unknown field; did you mean lockDuration?
lockDuration: "soon" is not a duration such as 30s, 5m, 1h30m, 14d, PT5M or forever
maxDeliveryCount: expected a whole number of 32 bits, found 1.5
requiresSession: expected true or false, found a text
rules[0].filtre: unknown field; did you mean filter?
rules[1]: expected an object, found a number
rules[2].filter.parameters.p: type "x" is not one of string, boolean, int, long, double, dateTime, duration
defaultRule: expected an object, found a list
extra: unknown field`
	if err != nil || faults.Error() != want {
		t.Errorf("faults\n%v, %v\nwant\n%s", faults, err, want)
	}
	if len(s.Rules) != 3 || s.Rules[0].Name != "a" {
		t.Errorf("what could be read is %+v", s)
	}
	if known, _ := DecodeJSON([]byte(text), &s, IgnoreUnknown); len(known) != len(faults)-3 {
		t.Errorf("without unknown fields: %v", known)
	}
	if _, err := DecodeJSON([]byte(`{"name":`), &s, RefuseUnknown); err == nil {
		t.Error("half a text was read")
	}
}

// The sender of a definition can control neither the length of the answer nor
// the time that it takes.
func TestFaultsAreBounded(t *testing.T) {
	const many = 100_000
	q := Queue{Name: "q", AuthorizationRules: make(AuthorizationRules, many)}.WithDefaults()
	q.AuthorizationRules[0].Rights = slices.Repeat([]Right{"None"}, many)
	s := Subscription{Name: "s", Rules: make([]Rule, many)}.WithDefaults()
	for name, err := range map[string]error{"queue": q.Validate(), "subscription": s.Validate()} {
		if fs, ok := errors.AsType[Faults](err); !ok || len(fs) != MaxFaults {
			t.Errorf("%s: %d faults, want %d", name, len(fs), MaxFaults)
		}
	}
}

// A fault is written to logs and terminals, and says nothing of the key that it is about:
// whether it is a placeholder is a guess.
func TestFaultsDoNotRevealKeys(t *testing.T) {
	for _, key := range []string{"ChangeMe-7f3a9c51", "<7f3a9c51>", "7f3a9c51...", strings.Repeat("7f3a9c51", 1000), "7f3a9c51"} {
		rules := AuthorizationRules{{KeyName: "k", Rights: []Right{Send}, PrimaryKey: key, SecondaryKey: key}}
		err := errors.Join(rules.Validate(), rules.CheckKeys(nil))
		if err == nil || strings.Contains(err.Error(), "7f3a9c51") {
			t.Errorf("it says: %.300v", err)
		}
	}
}
