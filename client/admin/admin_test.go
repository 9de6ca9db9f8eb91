// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/client/admin"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/triagetest"
)

// fields are the names that a type has in JSON.
func fields(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			out = append(out, fields(f.Type)...)
		case name != "-":
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Our types have every field of the broker's, so that putting what was read changes
// nothing.
func TestDefinitionsAreComplete(t *testing.T) {
	for _, c := range []struct{ ours, theirs any }{
		{admin.Queue{}, entity.Queue{}},
		{admin.Topic{}, entity.Topic{}},
		{admin.Subscription{}, entity.Subscription{}},
		{admin.Rule{}, entity.Rule{}},
		{admin.Filter{}, entity.Filter{}},
		{admin.Correlation{}, entity.Correlation{}},
		{admin.Action{}, entity.Action{}},
		{admin.Key{}, entity.AuthorizationRule{}},
		{admin.Runtime{}, broker.Runtime{}},
		{admin.Pause{}, broker.Pause{}},
		{admin.PolicyState{}, broker.PolicyState{}},
		{admin.DryRun{}, broker.DryRun{}},
		{admin.Pool{}, broker.Pool{}},
		{admin.Hub{}, entity.Hub{}},
		{admin.ConsumerGroup{}, entity.ConsumerGroup{}},
		{admin.HubRuntime{}, broker.HubRuntime{}},
		{firstOf(admin.HubRuntime{}.Groups), broker.GroupRuntime{}},
		{admin.GroupState{}, broker.GroupState{}},
		{firstOf(admin.GroupState{}.Members), broker.MemberRuntime{}},
		{firstOf(admin.GroupState{}.Partitions), broker.GroupPartition{}},
		{firstOf(admin.GroupState{}.Changes), broker.GroupChange{}},
		{admin.HubRuntime{}.In, broker.EventFlow{}},
		{admin.PartitionRuntime{}, broker.PartitionRuntime{}},
		{firstOf(admin.PartitionRuntime{}.Readers), broker.ReaderRuntime{}},
	} {
		ours, theirs := fields(reflect.TypeOf(c.ours)), fields(reflect.TypeOf(c.theirs))
		if !slices.Equal(ours, theirs) {
			t.Errorf("%T has the fields %v\nwant those of %T: %v", c.ours, ours, c.theirs, theirs)
		}
	}
}

// firstOf returns a value of the type that a list is of.
func firstOf[T any]([]T) (t T) { return t }

// open starts a broker and returns an administrator and a user of it.
func open(t *testing.T, yaml string) (context.Context, *admin.Client, *client.Client) {
	t.Helper()
	b := triagetest.Start(t, yaml)
	a, err := admin.New(b.ConnectionString(), nil)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx, a, b.Client()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestQueueFromCreationToDeletion(t *testing.T) {
	ctx, a, c := open(t, "")
	q, err := a.CreateQueue(ctx, admin.Queue{Name: "dir/orders", LockDuration: admin.Duration(30 * time.Second), MaxDeliveryCount: 3})
	must(t, err)
	if q.Definition.LockDuration.String() != "30s" || q.Definition.DefaultMessageTimeToLive != admin.Forever || q.Definition.Status != admin.Active {
		t.Errorf("created %+v", q.Definition)
	}
	_, err = a.CreateQueue(ctx, admin.Queue{Name: "dir/orders"})
	wantError(t, "create it twice", err, client.ErrExists)
	var said *client.Error
	if !errors.As(err, &said) || said.Code != "exists" || said.Entity != "dir/orders" {
		t.Errorf("the error is %+v", said)
	}

	s, err := c.OpenSender(ctx, "dir/orders", nil)
	must(t, err)
	must(t, s.Send(ctx, &client.Message{Priority: client.High}))
	must(t, s.Send(ctx, &client.Message{}))
	q, err = a.Queue(ctx, "dir/orders")
	must(t, err)
	if q.Runtime.Active != 2 || len(q.Runtime.Levels) != 2 || q.Runtime.Created.IsZero() {
		t.Errorf("runtime %+v", q.Runtime)
	}

	// What was read can be put, changed in one thing.
	before := q.Definition
	q.Definition.MaxDeliveryCount = 7
	q, err = a.PutQueue(ctx, q.Definition)
	must(t, err)
	before.MaxDeliveryCount = 7
	if !reflect.DeepEqual(q.Definition, before) {
		t.Errorf("put  %+v\nwant %+v", q.Definition, before)
	}

	must(t, a.Pause(ctx, "dir/orders", admin.Pause{Sending: true}))
	brief, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := s.Send(brief, &client.Message{}); err == nil {
		t.Error("sent to a queue that is paused")
	}
	must(t, a.Pause(ctx, "dir/orders", admin.Pause{}))

	all, err := a.Queues(ctx)
	must(t, err)
	space, err := a.Namespace(ctx)
	must(t, err)
	if len(all) != 1 || all[0].Definition.Name != "dir/orders" || space.Queues != 1 || space.Counts.Active != 2 {
		t.Errorf("queues %+v, namespace %+v", all, space)
	}
	must(t, a.DeleteQueue(ctx, "dir/orders"))
	_, err = a.Queue(ctx, "dir/orders")
	wantError(t, "show what was deleted", err, client.ErrNotFound)
}

func TestTopicWithSubscriptionsAndRules(t *testing.T) {
	ctx, a, c := open(t, "")
	_, err := a.CreateTopic(ctx, admin.Topic{Name: "events"})
	must(t, err)
	_, err = a.CreateSubscription(ctx, "events", admin.Subscription{Name: "big", Rules: []admin.Rule{{
		Name: "size", Filter: admin.Filter{SQL: "size > @least", Parameters: admin.Values{"least": int64(10), "ratio": 1.5}},
		Action: admin.Action{SQL: "SET seen = 'yes'"},
	}}})
	must(t, err)
	rule, err := a.PutRule(ctx, "events", "big", admin.Rule{Name: "mine", Filter: admin.Filter{Correlation: &admin.Correlation{
		Label: "mine", Properties: admin.Values{"n": int32(3)},
	}}})
	must(t, err)
	if rule.Filter.Kind != "correlation" || rule.Created.IsZero() {
		t.Errorf("put %+v", rule)
	}
	rules, err := a.Rules(ctx, "events", "big")
	must(t, err)
	if len(rules) != 2 || !reflect.DeepEqual(rules[0].Filter.Correlation.Properties, admin.Values{"n": int32(3)}) ||
		!reflect.DeepEqual(rules[1].Filter.Parameters, admin.Values{"least": int64(10), "ratio": 1.5}) {
		t.Errorf("rules %+v", rules)
	}
	must(t, a.DeleteRule(ctx, "events", "big", "mine"))

	s, err := c.OpenSender(ctx, "events", nil)
	must(t, err)
	for _, size := range []int64{5, 50} {
		must(t, s.Send(ctx, &client.Message{Properties: map[string]any{"size": size}}))
	}
	sub, err := a.Subscription(ctx, "events", "big")
	must(t, err)
	subs, err := a.Subscriptions(ctx, "events")
	must(t, err)
	topics, err := a.Topics(ctx)
	must(t, err)
	if sub.Runtime.Active != 1 || len(subs) != 1 || len(topics) != 1 || topics[0].Runtime.Subscriptions != 1 {
		t.Errorf("subscription %+v, %d of them, topics %+v", sub.Runtime, len(subs), topics)
	}
	sub.Definition.MaxDeliveryCount = 2
	_, err = a.PutSubscription(ctx, "events", sub.Definition)
	must(t, err)
	must(t, a.Pause(ctx, client.Subscription("events", "big"), admin.Pause{Receiving: true}))
	must(t, a.Pause(ctx, "events", admin.Pause{Sending: true}))
	topic, err := a.Topic(ctx, "events")
	must(t, err)
	if !topic.Paused.Sending {
		t.Error("the topic is not paused")
	}
	_, err = a.PutTopic(ctx, topic.Definition)
	must(t, err)
	must(t, a.DeleteSubscription(ctx, "events", "big"))
	must(t, a.DeleteTopic(ctx, "events"))
}

func TestPolicyAndWhatWaits(t *testing.T) {
	ctx, a, c := open(t, "queues: [{name: q, maxDeliveryCount: 1}]")
	s, err := c.OpenSender(ctx, "q", nil)
	must(t, err)
	for _, plan := range []string{"free", "paid", "free"} {
		must(t, s.Send(ctx, &client.Message{Properties: map[string]any{"plan": plan}}))
	}
	policy := json.RawMessage(`{"classes": [{"name": "paid", "level": 8, "when": "plan = 'paid'", "objective": {"wait": "2s"}}]}`)
	trial, err := a.TryPolicy(ctx, "q", policy)
	must(t, err)
	if trial.Examined != 3 || trial.Changed != 1 {
		t.Errorf("dry run %+v", trial)
	}
	_, err = a.SetPolicy(ctx, "q", json.RawMessage(`{"classes": [{"name": "", "level": 300}]}`))
	wantError(t, "a policy that makes no sense", err, client.ErrInvalid)
	state, err := a.SetPolicy(ctx, "q", policy)
	must(t, err)
	if state.Revision == 0 {
		t.Errorf("state %+v", state)
	}
	for !state.Applied { // in the background
		state, err = a.Policy(ctx, "q")
		must(t, err)
	}
	x, err := a.Explain(ctx, "q", 1)
	must(t, err)
	if x.SeqNo != 1 || x.Ahead != 1 || x.Text == "" {
		t.Errorf("explanation %+v", x)
	}
	if _, err = a.Demand(ctx, "q"); err != nil {
		t.Error(err)
	}
	_, err = a.SetPolicy(ctx, "q", nil)
	must(t, err)

	n, err := a.Purge(ctx, "q", admin.Purge{Filter: "plan = 'paid'", Before: time.Now().Add(time.Hour)})
	must(t, err)
	r, err := c.OpenReceiver(ctx, "q", nil)
	must(t, err)
	ms, err := r.Receive(ctx, 1)
	must(t, err)
	must(t, r.Abandon(ctx, ms[0], nil)) // one failure is one too many
	dead, err := a.Purge(ctx, client.DeadLetterQueue("q"), admin.Purge{})
	must(t, err)
	rest, err := a.Purge(ctx, "q", admin.Purge{})
	must(t, err)
	if n != 1 || dead != 1 || rest != 1 {
		t.Errorf("purged %d paid, %d dead and %d others, want 1 each", n, dead, rest)
	}
}

func TestKeyOpensItsQueueOnly(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: q}, {name: other}]\ntopics: [{name: t}]")
	ctx := t.Context()
	a, err := admin.New(b.ConnectionString(), nil)
	must(t, err)
	defer a.Close()
	key, err := a.SetKey(ctx, "q", admin.Key{Name: "worker", Rights: []admin.Right{admin.Listen, admin.Send}})
	must(t, err)
	if key.PrimaryKey == "" || key.Name != "worker" {
		t.Errorf("key %+v", key)
	}
	_, err = a.SetKey(ctx, "q", admin.Key{Name: "second", Rights: []admin.Right{admin.Send}})
	must(t, err)
	_, err = a.SetKey(ctx, "t", admin.Key{Name: "sender", Rights: []admin.Right{admin.Send}})
	must(t, err)
	address := fmt.Sprintf("Endpoint=sb://127.0.0.1:%s;SharedAccessKeyName=worker;SharedAccessKey=%s;UseDevelopmentEmulator=true", b.Port(), key.PrimaryKey)
	c, err := client.Dial(ctx, address, nil)
	must(t, err)
	defer c.Close()
	_, err = c.OpenSender(ctx, "q", nil)
	must(t, err)
	_, err = c.OpenSender(ctx, "other", nil)
	wantError(t, "use it elsewhere", err, client.ErrUnauthorized)
	small, err := admin.New(address, nil)
	must(t, err)
	defer small.Close()
	_, err = small.Queues(ctx)
	wantError(t, "manage with it", err, client.ErrUnauthorized)
	must(t, a.DeleteKey(ctx, "q", "second"))
	keys, err := a.Keys(ctx, "q")
	must(t, err)
	if len(keys) != 1 || keys[0].Name != "worker" {
		t.Errorf("keys %v", keys)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	ctx, a, _ := open(t, "")
	_, err := admin.New("no address", nil)
	wantError(t, "an address without a scheme", err, client.ErrAddress)
	wantError(t, "pause nothing", a.Pause(ctx, "nothing", admin.Pause{}), client.ErrNotFound)
	_, err = a.Keys(ctx, "nothing")
	wantError(t, "keys of nothing", err, client.ErrNotFound)
	wantError(t, "pause no pool", a.PausePool(ctx, "nobody"), client.ErrNotFound)
	wantError(t, "resume no pool", a.ResumePool(ctx, "nobody"), client.ErrNotFound)
	wantError(t, "resize no pool", a.ResizePool(ctx, "nobody", 3), client.ErrNotFound)
	pools, err := a.Pools(ctx)
	if err != nil || len(pools) != 0 {
		t.Errorf("pools %v, %v", pools, err)
	}
	_, err = a.CreateQueue(ctx, admin.Queue{Name: "q", LockDuration: admin.Duration(time.Hour), MaxDeliveryCount: -1})
	wantError(t, "two faults", err, client.ErrInvalid)
	for _, field := range []string{"lockDuration", "maxDeliveryCount"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

// A name never means another path than its own: not that of what it is in.
func TestNamesThatMeanAnotherPath(t *testing.T) {
	ctx, a, _ := open(t, "topics: [{name: t, subscriptions: [{name: s}]}]")
	for _, name := range []string{"", ".", ".."} {
		wantError(t, "delete rule "+name, a.DeleteRule(ctx, "t", "s", name), client.ErrInvalid)
		wantError(t, "delete subscription "+name, a.DeleteSubscription(ctx, "t", name), client.ErrInvalid)
		wantError(t, "delete topic "+name, a.DeleteTopic(ctx, name), client.ErrInvalid)
		_, err := a.Queue(ctx, name)
		wantError(t, "show queue "+name, err, client.ErrInvalid)
	}
	_, err := a.Subscription(ctx, "t", "s")
	must(t, err)
}

func TestNoRedirectIsFollowed(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Error("was sent elsewhere")
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	a, err := admin.New("amqp://"+s.Listener.Addr().String(), nil)
	must(t, err)
	defer a.Close()
	if err := a.DeleteQueue(t.Context(), "q"); err == nil {
		t.Error("deleted nothing without an error")
	}
}

// What is done to a part of a queue leaves the rest of it alone.
func TestPartsOfAQueue(t *testing.T) {
	ctx, a, c := open(t, "queues: [{name: q}]")
	s, err := c.OpenSender(ctx, "q", nil)
	must(t, err)
	must(t, s.Send(ctx, &client.Message{}))
	for _, part := range []string{"q/$Transfer/$DeadLetterQueue", client.DeadLetterQueue("q")} {
		n, err := a.Purge(ctx, part, admin.Purge{})
		must(t, err)
		if n != 0 {
			t.Errorf("purged %d messages of %s", n, part)
		}
		wantError(t, "pause "+part, a.Pause(ctx, part, admin.Pause{Sending: true}), client.ErrInvalid)
		_, err = a.Explain(ctx, part, 1)
		wantError(t, "explain in "+part, err, client.ErrInvalid)
	}
	_, err = a.Purge(ctx, "q/$management", admin.Purge{})
	wantError(t, "purge a node for requests", err, client.ErrInvalid)
	q, err := a.Queue(ctx, "q")
	must(t, err)
	if q.Runtime.Active != 1 || q.Paused.Sending {
		t.Errorf("there are %d messages, paused: %t", q.Runtime.Active, q.Paused.Sending)
	}
}

func TestHubFromCreationToDeletion(t *testing.T) {
	ctx, a, _ := open(t, "queues: [{name: q}]")
	h, err := a.CreateHub(ctx, admin.Hub{Name: "site/clicks", PartitionCount: 2, ConsumerGroups: []admin.ConsumerGroup{{Name: "a"}}})
	must(t, err)
	if h.Definition.MessageRetention.String() != "1d" || h.Definition.Status != admin.Active || len(h.Runtime.Partitions) != 2 || h.Runtime.Created.IsZero() {
		t.Errorf("created %+v", h)
	}
	_, err = a.CreateHub(ctx, admin.Hub{Name: "Q"})
	wantError(t, "the name of a queue", err, client.ErrExists)
	_, err = a.CreateHub(ctx, admin.Hub{Name: "x", PartitionCount: 1025})
	wantError(t, "too many partitions", err, client.ErrInvalid)
	h.Definition.PartitionCount, h.Definition.MessageRetention = 3, admin.Forever
	h, err = a.PutHub(ctx, h.Definition)
	must(t, err)
	if h.Definition.PartitionCount != 3 || h.Definition.MessageRetention != admin.Forever || len(h.Definition.ConsumerGroups) != 1 {
		t.Errorf("put %+v", h.Definition)
	}
	_, err = a.PutHub(ctx, admin.Hub{Name: "site/clicks", PartitionCount: 2})
	wantError(t, "fewer partitions", err, client.ErrInvalid)

	g, err := a.PutGroup(ctx, "site/clicks", admin.ConsumerGroup{Name: "b"})
	must(t, err)
	g.UserMetadata = "ours"
	g, err = a.PutGroup(ctx, "site/clicks", g)
	must(t, err)
	if g.UserMetadata != "ours" || g.Created.IsZero() {
		t.Errorf("the group is %+v", g)
	}
	_, err = a.PutGroup(ctx, "q", admin.ConsumerGroup{Name: "b"})
	wantError(t, "a group of a queue", err, client.ErrNotFound)
	must(t, a.DeleteGroup(ctx, "site/clicks", "a"))
	wantError(t, "deleting $Default", a.DeleteGroup(ctx, "site/clicks", "$Default"), client.ErrNotAllowed)
	groups, err := a.Groups(ctx, "site/clicks")
	must(t, err)
	if len(groups) != 2 || groups[0].Name != "$Default" || groups[1].Name != "b" || groups[1].UserMetadata != "ours" {
		t.Errorf("the groups are %+v", groups)
	}

	k, err := a.SetKey(ctx, "site/clicks", admin.Key{Name: "device", Rights: []admin.Right{admin.Send}})
	must(t, err)
	keys, err := a.Keys(ctx, "site/clicks")
	must(t, err)
	if k.PrimaryKey == "" || len(keys) != 1 {
		t.Errorf("the keys are %+v", keys)
	}
	wantError(t, "pausing a hub", a.Pause(ctx, "site/clicks", admin.Pause{Sending: true}), client.ErrNotAllowed)
	hubs, err := a.Hubs(ctx)
	must(t, err)
	space, err := a.Namespace(ctx)
	must(t, err)
	if len(hubs) != 1 || space.Hubs != 1 {
		t.Errorf("the hubs are %+v, of a namespace %+v", hubs, space)
	}
	must(t, a.DeleteHub(ctx, "site/clicks"))
	_, err = a.Hub(ctx, "site/clicks")
	wantError(t, "a deleted hub", err, client.ErrNotFound)
}

func TestGroupsOfAHub(t *testing.T) {
	ctx, a, c := open(t, "hubs: [{name: clicks, partitionCount: 2, consumerGroups: [{name: g}]}]")
	m, err := c.Group("clicks", "g").Join(ctx, client.MemberOptions{ID: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for n := 0; n < 2; {
		got, err := m.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n = len(got.Grants)
	}
	must(t, a.RewindGroup(ctx, "clicks", "g", 1, "earliest"))
	must(t, a.PauseGroup(ctx, "clicks", "g", 0, time.Hour))
	s, err := a.GroupState(ctx, "clicks", "g")
	if err != nil || len(s.Members) != 1 || s.Members[0].ID != "m" || len(s.Partitions) != 2 || s.Partitions[0].PausedUntil == nil ||
		s.Partitions[1].Checkpoint == nil || s.Partitions[1].Epoch != 2 || s.Partitions[1].Owner != "m" {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, a.PauseGroup(ctx, "clicks", "g", admin.AllPartitions, 0))
	must(t, a.ResumeGroup(ctx, "clicks", "g", admin.AllPartitions))
	if s, err := a.GroupState(ctx, "clicks", "g"); err != nil || s.Partitions[0].PausedUntil != nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, a.ReleasePartition(ctx, "clicks", "g", 1, time.Minute))
	for what, err := range map[string]error{
		"a position":  a.RewindGroup(ctx, "clicks", "g", 1, "soon"),
		"a partition": a.PauseGroup(ctx, "clicks", "g", 2, 0),
		"a group":     a.ResumeGroup(ctx, "clicks", "none", 0),
	} {
		if !errors.Is(err, client.ErrInvalid) && !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s that is none: %v", what, err)
		}
	}
}
