// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultsAreTheOnesOfServiceBus(t *testing.T) {
	got := Queue{Name: "q"}.WithDefaults()
	want := Queue{
		Name:                                "q",
		LockDuration:                        Duration(time.Minute),
		MaxSizeInMegabytes:                  1024,
		MaxMessageSizeInKilobytes:           256,
		DuplicateDetectionHistoryTimeWindow: Duration(10 * time.Minute),
		DefaultMessageTimeToLive:            Forever,
		MaxDeliveryCount:                    10,
		EnableBatchedOperations:             new(true),
		Status:                              Active,
		AutoDeleteOnIdle:                    Forever,
		SupportOrdering:                     new(true),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are\n%+v, want\n%+v", got, want)
	}
}

func TestDefaultsLeaveWhatIsSet(t *testing.T) {
	set := Queue{
		Name: "q", LockDuration: Duration(5 * time.Second), MaxSizeInMegabytes: 1, MaxMessageSizeInKilobytes: 1,
		DuplicateDetectionHistoryTimeWindow: Duration(5 * time.Second), DefaultMessageTimeToLive: 1, MaxDeliveryCount: 1,
		EnableBatchedOperations: new(false), Status: Disabled, AutoDeleteOnIdle: day, SupportOrdering: new(false),
	}
	if got := set.WithDefaults(); !reflect.DeepEqual(got, set) {
		t.Errorf("WithDefaults changed\n%+v into\n%+v", set, got)
	}
}

func TestDefaultsAreValid(t *testing.T) {
	for _, v := range []interface{ Validate() error }{
		Queue{Name: "q"}.WithDefaults(),
		Topic{Name: "t"}.WithDefaults(),
		Subscription{Name: "s", DefaultRule: &Rule{}}.WithDefaults(),
		Subscription{Name: "s", Rules: []Rule{{Name: "a"}, {Name: "b"}}}.WithDefaults(),
		Rule{Name: "$Default"}.WithDefaults(),
	} {
		if err := v.Validate(); err != nil {
			t.Errorf("%T with defaults: %v", v, err)
		}
	}
}

// fields returns the properties that err finds fault with.
func fields(t *testing.T, err error) []string {
	t.Helper()
	fs, ok := errors.AsType[Faults](err)
	if !ok {
		t.Fatalf("got %v, want Faults", err)
	}
	var names []string
	for _, f := range fs {
		names = append(names, f.Field)
	}
	return names
}

func TestQueueReportsEveryFault(t *testing.T) {
	q := Queue{
		Name:                                "-",
		LockDuration:                        Duration(6 * time.Minute),
		MaxSizeInMegabytes:                  -1,
		MaxMessageCount:                     -1,
		MaxMessageSizeInKilobytes:           102401,
		DuplicateDetectionHistoryTimeWindow: 8 * day,
		RequiresSession:                     true,
		DefaultMessageTimeToLive:            -1,
		MaxDeliveryCount:                    -1,
		Status:                              "Asleep",
		ForwardTo:                           "other",
		ForwardDeadLetteredMessagesTo:       "t/Subscriptions/s",
		AutoDeleteOnIdle:                    Duration(time.Minute),
		UserMetadata:                        strings.Repeat("ü", 1025),
		AuthorizationRules:                  AuthorizationRules{{Rights: []Right{"Fly"}}},
		Policy:                              json.RawMessage("{"),
	}
	want := []string{
		"name", "lockDuration", "maxSizeInMegabytes", "maxMessageCount", "maxMessageSizeInKilobytes",
		"duplicateDetectionHistoryTimeWindow", "defaultMessageTimeToLive", "maxDeliveryCount", "status",
		"forwardDeadLetteredMessagesTo", "forwardTo", "autoDeleteOnIdle", "userMetadata",
		"authorizationRules[0].keyName", "authorizationRules[0].rights", "authorizationRules[0].primaryKey", "policy",
	}
	if got := fields(t, q.Validate()); !reflect.DeepEqual(got, want) {
		t.Errorf("faults in\n%v, want\n%v", got, want)
	}
	if got, want := q.Validate().(Faults)[1].Error(), "lockDuration: 6m is outside 5s..5m"; got != want {
		t.Errorf("a fault reads %q, want %q", got, want)
	}
}

func TestForwardTargets(t *testing.T) {
	for target, ok := range map[string]bool{
		"other": true, "sb://ns/other": true, "https://ns/site/other": true,
		"Q": false, "sb://ns/q": false, "other/$DeadLetterQueue": false, "a b": false,
	} {
		err := Queue{Name: "q", ForwardTo: target}.WithDefaults().Validate()
		if (err == nil) != ok {
			t.Errorf("forwarding q to %q: %v, want allowed = %v", target, err, ok)
		}
	}
}

func TestTopicReportsEveryFault(t *testing.T) {
	topic := Topic{
		Name: "", DefaultMessageTimeToLive: -1, MaxSizeInMegabytes: -1, MaxMessageSizeInKilobytes: -1,
		DuplicateDetectionHistoryTimeWindow: 1, Status: "?", AutoDeleteOnIdle: 1, UserMetadata: strings.Repeat("x", 1025),
		AuthorizationRules: make(AuthorizationRules, 13),
	}
	got := fields(t, topic.Validate())
	want := []string{
		"name", "defaultMessageTimeToLive", "maxSizeInMegabytes", "maxMessageSizeInKilobytes",
		"duplicateDetectionHistoryTimeWindow", "status", "autoDeleteOnIdle", "userMetadata", "authorizationRules",
	}
	if len(got) < len(want) || !reflect.DeepEqual(got[:len(want)], want) {
		t.Errorf("faults in\n%v, want them to begin with\n%v", got, want)
	}
}

func TestSubscriptionReportsEveryFault(t *testing.T) {
	s := Subscription{
		Name: "a/b", LockDuration: 1, DefaultMessageTimeToLive: -1, MaxDeliveryCount: -1, Status: "?", AutoDeleteOnIdle: 1,
		DefaultRule: &Rule{Name: "$Default", Filter: Filter{Kind: "odd"}},
		Rules: []Rule{
			{Name: "a", Filter: Filter{Kind: SQLFilter}},
			{Name: "A", Filter: Filter{Kind: CorrelationFilter, Correlation: &Correlation{}}},
			{Name: "b", Filter: Filter{Kind: TrueFilter, Correlation: &Correlation{To: "x"}}, Action: Action{SQL: strings.Repeat("x", 1025)}},
			{Name: "c", Filter: Filter{Kind: CorrelationFilter, Correlation: &Correlation{To: "x"}, SQL: "1=1"}},
		},
	}
	want := []string{
		"name", "lockDuration", "defaultMessageTimeToLive", "maxDeliveryCount", "status", "autoDeleteOnIdle",
		"defaultRule.filter.kind", "defaultRule", "rules[0].filter.sql", "rules[1].filter.correlation", "rules[1].name",
		"rules[2].filter.correlation", "rules[2].action.sql", "rules[3].filter.sql",
	}
	if got := fields(t, s.Validate()); !reflect.DeepEqual(got, want) {
		t.Errorf("faults in\n%v, want\n%v", got, want)
	}
}

func TestInitialRules(t *testing.T) {
	everything := Rule{Name: "$Default", Filter: Filter{Kind: TrueFilter}}
	high := Rule{Name: "high", Filter: Filter{Kind: SQLFilter, SQL: "Priority = 'High'"}}
	for name, c := range map[string]struct {
		in   Subscription
		want []Rule
	}{
		"no rules set":   {Subscription{}, []Rule{everything}},
		"a default rule": {Subscription{DefaultRule: &Rule{Filter: high.Filter}}, []Rule{{Name: "$Default", Filter: high.Filter}}},
		"rules":          {Subscription{Rules: []Rule{{Name: "high", Filter: Filter{SQL: high.Filter.SQL}}}}, []Rule{high}},
		"no rule at all": {Subscription{Rules: []Rule{}}, []Rule{}},
	} {
		if got := c.in.WithDefaults().InitialRules(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestSubscriptionAsQueue(t *testing.T) {
	topic := Topic{Name: "news", DefaultMessageTimeToLive: day, MaxSizeInMegabytes: 7}.WithDefaults()
	sub := Subscription{Name: "high", MaxDeliveryCount: 3, RequiresSession: true}.WithDefaults()
	q := sub.AsQueue(topic)
	got := fmt.Sprint(q.Name, q.MaxDeliveryCount, q.RequiresSession, q.DefaultMessageTimeToLive, q.MaxSizeInMegabytes)
	if want := fmt.Sprint("news/Subscriptions/high", 3, true, day, 7); got != want {
		t.Errorf("as a queue: %s, want %s", got, want)
	}
}

func TestUpdatesThatAreNotAllowed(t *testing.T) {
	q, top, sub := Queue{Name: "q"}.WithDefaults(), Topic{Name: "t"}.WithDefaults(), Subscription{Name: "s"}.WithDefaults()
	changed := func(err error, want ...string) {
		t.Helper()
		text := ""
		if err != nil {
			text = err.Error()
			if !errors.Is(err, errFixed) {
				t.Errorf("%v does not wrap %v", err, errFixed)
			}
		}
		if got, want := text, strings.Join(want, "\n"); got != want {
			t.Errorf("rejected with %q, want %q", got, want)
		}
	}
	next := q
	next.Name, next.MaxDeliveryCount, next.LockDuration, next.Status = "Q", 3, Duration(10*time.Second), Disabled
	changed(q.CheckUpdate(next))
	next.RequiresSession, next.RequiresDuplicateDetection, next.EnablePartitioning = true, true, true
	changed(q.CheckUpdate(next),
		"The value for the RequiresSession property of an existing Queue cannot be changed. ",
		"The value for the RequiresDuplicateDetection property of an existing Queue cannot be changed. ",
		"Partitioning cannot be changed for Queue. ")

	nextTopic := top
	nextTopic.EnablePartitioning = true
	changed(top.CheckUpdate(nextTopic), "Partitioning cannot be changed for Topic. ")
	nextTopic = top
	nextTopic.RequiresDuplicateDetection = true
	changed(top.CheckUpdate(nextTopic), "The value for the RequiresDuplicateDetection property of an existing Topic cannot be changed. ")

	nextSub := sub
	nextSub.RequiresSession = true
	changed(sub.CheckUpdate(nextSub), "The value for the RequiresSession property of an existing Subscription cannot be changed. ")
	nextSub = sub
	nextSub.Name = "other"
	changed(sub.CheckUpdate(nextSub), "The value for the Name property of an existing Subscription cannot be changed. ")
}

func TestStatusSaysWhatMayPass(t *testing.T) {
	for s, want := range map[Status][2]bool{
		"": {true, true}, Active: {true, true}, Disabled: {false, false}, SendDisabled: {false, true}, ReceiveDisabled: {true, false},
	} {
		if got := [2]bool{s.CanSend(), s.CanReceive()}; got != want {
			t.Errorf("%q: send, receive = %v, want %v", s, got, want)
		}
	}
	var s Status
	if err := s.UnmarshalText([]byte("senddisabled")); err != nil || s != SendDisabled {
		t.Errorf("senddisabled is read as %q, %v", s, err)
	}
}

func TestJSONUsesTheNamesOfServiceBus(t *testing.T) {
	in := `{"name":"q","lockDuration":"30s","requiresSession":true,"enableBatchedOperations":false,"status":"Active",` +
		`"authorizationRules":[{"keyName":"k","rights":["Send","Listen"],"primaryKey":"p"}],"policy":{"discipline":"aging"}}`
	var q Queue
	if err := json.Unmarshal([]byte(in), &q); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(q)
	if err != nil || string(out) != in {
		t.Errorf("re-encoded as\n%s, %v, want\n%s", out, err, in)
	}
}

func TestAuthorizationRulePrintsNoKey(t *testing.T) {
	r := AuthorizationRule{KeyName: "root", Rights: []Right{Manage}, PrimaryKey: "secret1", SecondaryKey: "secret2"}
	if text := fmt.Sprintf("%v %+v %s", r, AuthorizationRules{r}, r); strings.Contains(text, "secret") {
		t.Errorf("a printed rule shows its keys: %s", text)
	}
}

func TestAuthorizationRuleNamesAreUnique(t *testing.T) {
	r := AuthorizationRule{KeyName: "root", Rights: []Right{Send}, PrimaryKey: "k"}
	if err := (AuthorizationRules{r}).Validate(); err != nil {
		t.Errorf("one rule: %v", err)
	}
	if got := fields(t, AuthorizationRules{r, r}.Validate()); !reflect.DeepEqual(got, []string{"[1].keyName"}) {
		t.Errorf("two rules of one name: faults in %v", got)
	}
}

// Issue 10, number 3: every text of a rule has a limit, and so has their number.
func TestRulesHaveLimits(t *testing.T) {
	long, fits := strings.Repeat("ü", 1025), strings.Repeat("ü", 1024)
	value := func(text string) Value {
		v, err := NewValue(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	values := func(n int, text string) map[string]Value {
		m := map[string]Value{}
		for i := range n {
			m[fmt.Sprint("p", i)] = value(text)
		}
		return m
	}
	correlated := func(c Correlation) Rule { return Rule{Name: "r", Filter: Filter{Correlation: &c}} }
	for name, rule := range map[string]func(text string, n int) Rule{
		"correlation id":      func(s string, _ int) Rule { return correlated(Correlation{CorrelationID: s}) },
		"message id":          func(s string, _ int) Rule { return correlated(Correlation{MessageID: s}) },
		"to":                  func(s string, _ int) Rule { return correlated(Correlation{To: s}) },
		"reply to":            func(s string, _ int) Rule { return correlated(Correlation{ReplyTo: s}) },
		"label":               func(s string, _ int) Rule { return correlated(Correlation{Label: s}) },
		"session id":          func(s string, _ int) Rule { return correlated(Correlation{SessionID: s}) },
		"reply-to session id": func(s string, _ int) Rule { return correlated(Correlation{ReplyToSessionID: s}) },
		"content type":        func(s string, _ int) Rule { return correlated(Correlation{ContentType: s}) },
		"property":            func(s string, _ int) Rule { return correlated(Correlation{Properties: values(1, s)}) },
		"name of a property": func(s string, _ int) Rule {
			return correlated(Correlation{Properties: map[string]Value{s: value("x")}})
		},
		"properties": func(_ string, n int) Rule { return correlated(Correlation{Properties: values(n, "x")}) },
		"sql":        func(s string, _ int) Rule { return Rule{Name: "r", Filter: Filter{SQL: s}} },
		"parameter": func(s string, _ int) Rule {
			return Rule{Name: "r", Filter: Filter{SQL: "@p0", Parameters: values(1, s)}}
		},
		"parameters": func(_ string, n int) Rule {
			return Rule{Name: "r", Filter: Filter{SQL: "@p0", Parameters: values(n, "x")}}
		},
		"action": func(s string, _ int) Rule { return Rule{Name: "r", Action: Action{SQL: s}} },
		"parameter of an action": func(s string, _ int) Rule {
			return Rule{Name: "r", Action: Action{SQL: "SET x = @p0", Parameters: values(1, s)}}
		},
		"parameters of an action": func(_ string, n int) Rule {
			return Rule{Name: "r", Action: Action{SQL: "SET x = @p0", Parameters: values(n, "x")}}
		},
	} {
		if err := rule(fits, 64).WithDefaults().Validate(); err != nil {
			t.Errorf("%s at its limit: %v, want nil", name, err)
		}
		if err := rule(long, 65).WithDefaults().Validate(); err == nil {
			t.Errorf("%s beyond its limit: want an error", name)
		}
	}
}

func TestHubDefaults(t *testing.T) {
	got := Hub{Name: "h"}.WithDefaults()
	want := Hub{Name: "h", PartitionCount: 4, MessageRetention: Duration(24 * time.Hour), MaxMessageSizeInKilobytes: 1024, Status: Active}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults are\n%+v, want\n%+v", got, want)
	}
	if err := got.Validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
}

func TestHubReportsEveryFault(t *testing.T) {
	h := Hub{
		Name:                        "a/partitions/0",
		PartitionCount:              1025,
		MessageRetention:            Duration(time.Second),
		MaxPartitionSizeInMegabytes: -1,
		MaxMessageSizeInKilobytes:   102401,
		Status:                      "Asleep",
		UserMetadata:                strings.Repeat("ü", 1025),
		AuthorizationRules:          AuthorizationRules{{KeyName: "k", Rights: []Right{Send}}},
		ConsumerGroups:              []ConsumerGroup{{Name: "$Default"}, {Name: "g"}, {Name: "$other"}, {Name: "G"}, {}},
	}
	want := []string{
		"name", "partitionCount", "messageRetention", "maxPartitionSizeInMegabytes", "maxMessageSizeInKilobytes", "status",
		"userMetadata", "authorizationRules[0].primaryKey", "consumerGroups[2].name", "consumerGroups[3].name", "consumerGroups[4].name",
	}
	if got := fields(t, h.Validate()); !reflect.DeepEqual(got, want) {
		t.Errorf("faults in\n%v, want\n%v", got, want)
	}
	for _, n := range []int{-1, 1025} {
		if err := (Hub{Name: "h", PartitionCount: n}).WithDefaults().Validate(); err == nil {
			t.Errorf("a hub with %d partitions is valid", n)
		}
	}
	many := Hub{Name: "h", ConsumerGroups: make([]ConsumerGroup, 1001)}.WithDefaults()
	for i := range many.ConsumerGroups {
		many.ConsumerGroups[i].Name = fmt.Sprint("g", i)
	}
	if got := fields(t, many.Validate()); !reflect.DeepEqual(got, []string{"consumerGroups"}) {
		t.Errorf("1,001 groups: faults in %v", got)
	}
}

func TestPartitionsNeverShrink(t *testing.T) {
	h := Hub{Name: "h", PartitionCount: 4}.WithDefaults()
	grown := h
	grown.PartitionCount, grown.MessageRetention, grown.Name = 8, Duration(time.Hour), "H"
	if err := h.CheckUpdate(grown); err != nil {
		t.Errorf("growing: %v", err)
	}
	err := grown.CheckUpdate(h)
	if e, ok := errors.AsType[*UpdateError](err); !ok || e.Property != "PartitionCount" {
		t.Errorf("shrinking: %v, want an UpdateError of PartitionCount", err)
	}
	other := h
	other.Name = "other"
	if e, ok := errors.AsType[*UpdateError](h.CheckUpdate(other)); !ok || e.Property != "Name" {
		t.Errorf("another name: %v, want an UpdateError of Name", e)
	}
}
