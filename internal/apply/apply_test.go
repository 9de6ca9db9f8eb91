// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// read returns the entities of a file.
func read(t *testing.T, yaml string) Namespace {
	t.Helper()
	c, err := config.Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return Of(c)
}

// describe prints a plan, a line for each step, change and unmanaged entity.
func describe(p Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintln(&b, s)
		for _, c := range s.Changes {
			fmt.Fprintf(&b, "  %s: %s -> %s\n", c.Property, c.From, c.To)
		}
		if s.Conflict != nil {
			fmt.Fprintf(&b, "  blocked: %v\n", s.Conflict)
		}
	}
	for _, place := range p.Unmanaged {
		fmt.Fprintln(&b, "keep", place)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	tests := []struct{ name, want, have, plan string }{
		{"nothing at all", "", "", ""},
		{"a new queue",
			"queues: [{name: a, lockDuration: 30s}]", "",
			"create queue a\n  lockDuration: 1m -> 30s\n"},
		{"the same queue, written differently",
			"queues: [{name: A, lockDuration: PT1M, policy: {discipline: aging, aging: {every: 1m}}}]",
			`queues: [{name: a, policy: {"aging": {"every": "1m"}, "discipline": "aging"}}]`, ""},
		{"targets of forwards before what forwards to them",
			`queues: [{name: a, forwardTo: b}, {name: b, forwardTo: "sb://host/T"}, {name: old, forwardTo: c}, {name: c}]
topics: [{name: t, subscriptions: [{name: s, forwardDeadLetteredMessagesTo: d}]}, {name: d}]`,
			"queues: [{name: old}]",
			"create topic t\ncreate queue b\n  forwardTo:  -> sb://host/T\ncreate queue a\n  forwardTo:  -> b\n" +
				"create queue c\nupdate queue old\n  forwardTo:  -> c\n" +
				"create topic d\ncreate subscription t/s\n  forwardDeadLetteredMessagesTo:  -> d\n  rule $Default:  -> everything\n"},
		{"forwards to an entity that does not exist",
			"queues: [{name: a, forwardTo: no}, {name: old, forwardTo: no}, {name: as, forwardTo: \"sb://h/No\"}, {name: b, forwardDeadLetteredMessagesTo: left}]\n" +
				"topics: [{name: t, subscriptions: [{name: s, forwardDeadLetteredMessagesTo: \"sb://host/No\"}]}]",
			"queues: [{name: left}, {name: old, forwardTo: no}, {name: as, forwardTo: no}]",
			"create queue a\n  forwardTo:  -> no\n  blocked: forwardTo: \"no\" is neither in the file nor in the broker\n" +
				"update queue as\n  forwardTo: no -> sb://h/No\ncreate queue b\n  forwardDeadLetteredMessagesTo:  -> left\ncreate topic t\n" +
				"create subscription t/s\n  forwardDeadLetteredMessagesTo:  -> sb://host/No\n  rule $Default:  -> everything\n" +
				"  blocked: forwardDeadLetteredMessagesTo: \"sb://host/No\" is neither in the file nor in the broker\nkeep queue left\n"},
		{"forwards that turn round",
			"queues: [{name: a, forwardTo: b}, {name: b, forwardTo: c}, {name: c}, {name: x, forwardTo: t}]\n" +
				"topics: [{name: t, subscriptions: [{name: s}, {name: more}]}]",
			"queues: [{name: a}, {name: b, forwardTo: c}, {name: c, forwardTo: a}, {name: x}]\n" +
				"topics: [{name: t, subscriptions: [{name: s, forwardTo: x}, {name: more}]}]",
			"update queue c\n  forwardTo: a -> \nupdate queue a\n  forwardTo:  -> b\n" +
				"update subscription t/s\n  forwardTo: x -> \nupdate queue x\n  forwardTo:  -> t\n"},
		{"dead letters that go in a circle",
			"queues: [{name: a, forwardTo: b, lockDuration: 30s}, {name: b, forwardDeadLetteredMessagesTo: a, lockDuration: 30s}]", "",
			"create queue b\n  lockDuration: 1m -> 30s\ncreate queue a\n  forwardTo:  -> b\n  lockDuration: 1m -> 30s\n" +
				"update queue b\n  forwardDeadLetteredMessagesTo:  -> a\n"},
		{"a new hub",
			"hubs: [{name: h, partitionCount: 8, consumerGroups: [$Default, g, {name: k, userMetadata: ours}]}]", "",
			"create hub h\n  partitionCount: 4 -> 8\ncreate group h/g\ncreate group h/k\n  userMetadata:  -> ours\n"},
		{"a hub that changes",
			"hubs: [{name: H, messageRetention: 1h, consumerGroups: [g, {name: $default, userMetadata: all}]}]",
			"hubs: [{name: h, partitionCount: 8, status: Disabled, consumerGroups: [{name: g, userMetadata: ours}, other, $Default]}, {name: more}]",
			"update hub H\n  messageRetention: 1d -> 1h\nupdate group H/g\n  userMetadata: ours -> \nupdate group H/$default\n  userMetadata:  -> all\n" +
				"keep group h/other\nkeep hub more\n"},
		{"a group that every hub has", "hubs: [{name: h}]", "hubs: [{name: h, consumerGroups: [$Default]}]", ""},
		{"a hub that would shrink, names of others, and forwards to a hub",
			"queues: [{name: h}, {name: f, forwardTo: old}]\nhubs: [{name: q}, {name: t}, {name: s, partitionCount: 2}]",
			"queues: [{name: q}]\ntopics: [{name: t}]\nhubs: [{name: h}, {name: s}, {name: old}]",
			"create queue h\n  blocked: there is an event hub of this name\n" +
				"create queue f\n  forwardTo:  -> old\n  blocked: forwardTo: \"old\" is an event hub; only queues and topics can be forwarded to\n" +
				"create hub q\n  blocked: there is a queue of this name\ncreate hub t\n  blocked: there is a topic of this name\n" +
				"update hub s\n  partitionCount: 4 -> 2\n  blocked: The partition count of an existing EventHub cannot be decreased: it is 4, and 2 was asked for. \n" +
				"keep queue q\nkeep topic t\nkeep hub h\nkeep hub old\n"},
		{"a property is reset to its default",
			"queues: [{name: a}]", "queues: [{name: a, maxDeliveryCount: 3}]",
			"update queue a\n  maxDeliveryCount: 3 -> 10\n"},
		{"properties that are managed elsewhere stay",
			"queues: [{name: a}]",
			"queues: [{name: a, status: SendDisabled, policy: {discipline: strict}, authorizationRules: [{keyName: k, rights: [Send], primaryKey: p}]}]",
			""},
		{"unless the file has them",
			"queues: [{name: a, status: Active, policy: {discipline: aging}}]",
			"queues: [{name: a, status: SendDisabled, policy: {discipline: strict}}]",
			"update queue a\n  policy: {\"discipline\":\"strict\"} -> {\"discipline\":\"aging\"}\n  status: SendDisabled -> Active\n"},
		{"keys are not shown",
			"queues: [{name: a, authorizationRules: [{keyName: k, rights: [Send], primaryKey: new}]}]",
			"queues: [{name: a, authorizationRules: [{keyName: k, rights: [Send], primaryKey: old}]}]",
			"update queue a\n  authorizationRules: [k[Send]] -> [k[Send]]\n"},
		{"what cannot change",
			"queues: [{name: a, requiresSession: true}]", "queues: [{name: a}]",
			"update queue a\n  requiresSession: false -> true\n  blocked: The value for the RequiresSession property of an existing Queue cannot be changed. \n"},
		{"a queue where a topic is", "queues: [{name: a}]", "topics: [{name: A}]",
			"create queue a\n  blocked: there is a topic of this name\nkeep topic A\n"},
		{"a topic where a queue is", "topics: [{name: a}]", "queues: [{name: A}]",
			"create topic a\n  blocked: there is a queue of this name\nkeep queue A\n"},
		{"a new topic with everything",
			"topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: \"a = 1\", action: \"SET b = 2\"}]}, {name: all}]}]", "",
			"create topic t\ncreate subscription t/s\n  rule r:  -> a = 1; SET b = 2\ncreate subscription t/all\n  rule $Default:  -> everything\n"},
		{"a policy, without its secret",
			"queues: [{name: a, policy: {alerts: {webhook: \"https://example.com\", secret: new}}}]",
			"queues: [{name: a, policy: {alerts: {webhook: \"https://example.com\", secret: old}}}]",
			"update queue a\n  policy: {\"alerts\":{\"secret\":\"…\",\"webhook\":\"https://example.com\"}} -> {\"alerts\":{\"secret\":\"…\",\"webhook\":\"https://example.com\"}}\n"},
		{"rules one by one",
			"topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: \"a = 2\"}, {name: new, filter: true}, {name: same, filter: \"x = 1\"}]}]}]",
			"topics: [{name: t, subscriptions: [{name: s, rules: [{name: R, filter: \"a = 1\"}, {name: old, filter: true}, {name: same, filter: \"x = 1\"}]}]}]",
			"update rule t/s/r\n  filter: {\"kind\":\"sql\",\"sql\":\"a = 1\"} -> {\"kind\":\"sql\",\"sql\":\"a = 2\"}\ncreate rule t/s/new\n  rule new:  -> everything\nkeep rule t/s/old\n"},
		{"rules that are not in the file",
			"topics: [{name: t, subscriptions: [{name: s, lockDuration: 5s}]}]",
			"topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: \"a = 1\"}]}]}]",
			"update subscription t/s\n  lockDuration: 1m -> 5s\n"},
		{"an empty list of rules",
			"topics: [{name: t, subscriptions: [{name: s, rules: []}]}]",
			"topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: \"a = 1\"}]}]}]",
			"keep rule t/s/r\n"},
		{"what the file does not name",
			"topics: [{name: t}]",
			"queues: [{name: q}]\ntopics: [{name: t, subscriptions: [{name: s}]}, {name: u, subscriptions: [{name: s}]}]",
			"keep queue q\nkeep subscription t/s\nkeep topic u\n"},
		{"a topic's property", "topics: [{name: t, defaultMessageTimeToLive: 1h}]", "topics: [{name: t, status: Disabled}]",
			"update topic t\n  defaultMessageTimeToLive: forever -> 1h\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := describe(Diff(read(t, tt.want), read(t, tt.have))); got != tt.plan {
				t.Errorf("got\n%swant\n%s", got, tt.plan)
			}
		})
	}
}

func TestPruneDeletesLast(t *testing.T) {
	p := Diff(read(t, "queues: [{name: new}]"), read(t, "queues: [{name: old}]\ntopics: [{name: t}]")).Prune()
	if got, want := describe(p), "create queue new\ndelete queue old\ndelete topic t\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if p.Count(Delete) != 2 || p.Count(Create) != 1 || p.Count(Update) != 0 {
		t.Errorf("counts %d %d %d", p.Count(Delete), p.Count(Create), p.Count(Update))
	}
}

// TestBrokersOwnEntitiesAreLeftAlone: names with a dollar cannot be in a file.
func TestBrokersOwnEntitiesAreLeftAlone(t *testing.T) {
	have := Namespace{Queues: []entity.Queue{{Name: "$q"}}, Topics: []config.Topic{{Topic: entity.Topic{Name: "$alerts"}}}}
	if p := Diff(Namespace{}, have).Prune(); len(p.Steps) > 0 {
		t.Errorf("got %v, want nothing", p.Steps)
	}
}

func TestTrueFilterOfOtherClients(t *testing.T) {
	have := read(t, "topics: [{name: t, subscriptions: [{name: s}]}]")
	have.Topics[0].Subscriptions[0].Rules = []entity.Rule{{Name: "r", Filter: entity.Filter{Kind: entity.TrueFilter, SQL: "1=1"}}}
	want := read(t, "topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: true}]}]}]")
	if p := Diff(want, have); len(p.Steps) > 0 {
		t.Errorf("got\n%swant nothing", describe(p))
	}
}

// TestTimesOfRulesAreNotCompared: no file knows when a rule was made.
func TestTimesOfRulesAreNotCompared(t *testing.T) {
	const file = "topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: \"a = 1\"}]}]}]"
	want, have := read(t, file), read(t, file)
	have.Topics[0].Subscriptions[0].Rules[0].CreatedAt = time.Unix(1, 0)
	if p := Diff(want, have); len(p.Steps) > 0 {
		t.Errorf("got\n%swant nothing", describe(p))
	}
}

// TestTimesOfKeysAreNotCompared: no file knows when a key was made.
func TestTimesOfKeysAreNotCompared(t *testing.T) {
	want := read(t, "queues: [{name: a, authorizationRules: [{keyName: k, rights: [Send], primaryKey: p}]}]")
	have := read(t, "queues: [{name: a, authorizationRules: [{keyName: k, rights: [Send], primaryKey: p}]}]")
	have.Queues[0].AuthorizationRules[0].CreatedTime = have.Queues[0].AuthorizationRules[0].CreatedTime.AddDate(2000, 0, 0)
	if p := Diff(want, have); len(p.Steps) > 0 {
		t.Errorf("got\n%swant nothing", describe(p))
	}
}

// TestAppliedTwiceIsNothing carries a plan out on plain values.
func TestAppliedTwiceIsNothing(t *testing.T) {
	want := read(t, config.Example())
	var have Namespace
	for _, s := range Diff(want, have).Steps {
		switch s.Kind {
		case Queue:
			have.Queues = append(have.Queues, *s.NewQueue)
		case Topic:
			have.Topics = append(have.Topics, config.Topic{Topic: *s.NewTopic})
		case Subscription:
			i := slices.IndexFunc(have.Topics, func(t config.Topic) bool { return t.Name == s.EntityRef.Topic })
			s.NewSubscription.Rules = s.NewSubscription.InitialRules()
			have.Topics[i].Subscriptions = append(have.Topics[i].Subscriptions, *s.NewSubscription)
		}
	}
	if p := Diff(want, have); len(p.Steps)+len(p.Unmanaged) > 0 {
		t.Errorf("the second time:\n%s", describe(p))
	}
}

func TestConflicts(t *testing.T) {
	p := Diff(read(t, "queues: [{name: a, requiresSession: true}, {name: b}]"), read(t, "queues: [{name: a}]\ntopics: [{name: b}]"))
	err := p.Conflicts()
	if err == nil || !strings.Contains(err.Error(), "queue a: ") || !strings.Contains(err.Error(), "queue b: there is a topic") {
		t.Errorf("blocked by %v, want both reasons", err)
	}
	if err := (Plan{}).Conflicts(); err != nil {
		t.Errorf("an empty plan is blocked by %v", err)
	}
}

func TestDescribe(t *testing.T) {
	five, err := entity.NewValue("5")
	if err != nil {
		t.Fatal(err)
	}
	for want, filter := range map[string]entity.Filter{
		"everything":                         {},
		"nothing":                            {Kind: entity.FalseFilter},
		`a = @x (@x = "5")`:                  {SQL: "a = @x", Parameters: map[string]entity.Value{"x": five}},
		`label is "l" and property n is "5"`: {Correlation: &entity.Correlation{Label: "l", Properties: map[string]entity.Value{"n": five}}},
		`messageId is "m" and contentType is "a b"`: {Correlation: &entity.Correlation{ContentType: "a b", MessageID: "m"}},
	} {
		if got := DescribeFilter(filter); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
