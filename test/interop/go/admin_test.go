// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

const forever = "P10675199DT2H48M5.4775807S"

// administer returns an administration client, which uses HTTPS on the same
// port as everything else.
func administer(t *testing.T, connection string) *admin.Client {
	t.Helper()
	c, err := admin.NewClientFromConnectionString(connection, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantStatus checks for the client's typed error, with a text in it.
func wantStatus(t *testing.T, what string, err error, status int, fragment string) {
	t.Helper()
	var re *azcore.ResponseError
	if !errors.As(err, &re) || re.StatusCode != status || !strings.Contains(err.Error(), fragment) {
		t.Errorf("%s: %v, want status %d with %q", what, err, status, fragment)
	}
}

func TestAdminQueues(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	rules := []admin.AuthorizationRule{{
		AccessRights: []admin.AccessRight{admin.AccessRightSend, admin.AccessRightListen},
		KeyName:      ptr("workers"), PrimaryKey: ptr("cHJpbWFyeQ=="), SecondaryKey: ptr("c2Vjb25kYXJ5"),
	}}
	want := admin.QueueProperties{
		LockDuration: ptr("PT45S"), MaxSizeInMegabytes: ptr(int32(2048)), RequiresDuplicateDetection: ptr(true), RequiresSession: ptr(true),
		DefaultMessageTimeToLive: ptr("P1DT2H"), DeadLetteringOnMessageExpiration: ptr(true), DuplicateDetectionHistoryTimeWindow: ptr("PT4H"),
		MaxDeliveryCount: ptr(int32(7)), EnableBatchedOperations: ptr(false), Status: ptr(admin.EntityStatusReceiveDisabled),
		AutoDeleteOnIdle: ptr("PT10M"), EnablePartitioning: ptr(false), UserMetadata: ptr("for <tests> & \"people\""),
		AuthorizationRules: rules, MaxMessageSizeInKilobytes: ptr(int64(1024)),
	}
	made, err := c.CreateQueue(ctx, "admin/queue", &admin.CreateQueueOptions{Properties: &want})
	if err != nil {
		t.Fatal(err)
	}
	if made.QueueName != "admin/queue" {
		t.Errorf("created %q, want admin/queue", made.QueueName)
	}
	sameQueue(t, "created", made.QueueProperties, want)
	_, err = c.CreateQueue(ctx, "Admin/Queue", nil)
	wantStatus(t, "create again", err, http.StatusConflict, "")

	got, err := c.GetQueue(ctx, "admin/queue", nil)
	if err != nil || got == nil {
		t.Fatalf("get: %v, %v", got, err)
	}
	sameQueue(t, "got", got.QueueProperties, want)

	change := got.QueueProperties
	change.MaxDeliveryCount, change.DefaultMessageTimeToLive, change.Status = ptr(int32(3)), ptr(forever), ptr(admin.EntityStatusActive)
	changed, err := c.UpdateQueue(ctx, "admin/queue", change, nil)
	if err != nil {
		t.Fatal(err)
	}
	want.MaxDeliveryCount, want.DefaultMessageTimeToLive, want.Status = change.MaxDeliveryCount, change.DefaultMessageTimeToLive, change.Status
	sameQueue(t, "updated", changed.QueueProperties, want)

	change.RequiresSession = ptr(false)
	_, err = c.UpdateQueue(ctx, "admin/queue", change, nil)
	wantStatus(t, "change of sessions", err, http.StatusBadRequest, "The value for the RequiresSession property of an existing Queue cannot be changed")
	_, err = c.UpdateQueue(ctx, "admin/none", admin.QueueProperties{}, nil)
	wantStatus(t, "update of nothing", err, http.StatusNotFound, "404 Not Found")
	_, err = c.CreateQueue(ctx, "admin-bad", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{LockDuration: ptr("PT1H")}})
	wantStatus(t, "lock of an hour", err, http.StatusBadRequest, "lockDuration")

	if _, err := c.DeleteQueue(ctx, "admin/queue", nil); err != nil {
		t.Fatal(err)
	}
	if gone, err := c.GetQueue(ctx, "admin/queue", nil); gone != nil || err != nil {
		t.Errorf("after deletion: %v, %v, want nothing", gone, err)
	}
	_, err = c.DeleteQueue(ctx, "admin/queue", nil)
	wantStatus(t, "delete again", err, http.StatusNotFound, "")
}

// sameQueue compares every property. Access rules are returned as they were
// sent, without the times of their creation and change: the service does not
// return them.
func sameQueue(t *testing.T, what string, got, want admin.QueueProperties) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s: %s is %v, want %v", what, g.Type().Field(i).Name, show(g.Field(i)), show(w.Field(i)))
		}
	}
}

func show(v reflect.Value) any {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v.Interface())
}

func TestAdminPartitionedSizes(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	q, err := c.CreateQueue(ctx, "admin-partitioned", &admin.CreateQueueOptions{
		Properties: &admin.QueueProperties{EnablePartitioning: ptr(true), MaxSizeInMegabytes: ptr(int32(1024))}})
	if err != nil || *q.MaxSizeInMegabytes != 16*1024 {
		t.Fatalf("partitioned queue of 1024 MB: %v, %v, want 16 times that", show(reflect.ValueOf(q.MaxSizeInMegabytes)), err)
	}
	u, err := c.UpdateQueue(ctx, "admin-partitioned", q.QueueProperties, nil)
	if err != nil || *u.MaxSizeInMegabytes != 16*1024 {
		t.Errorf("after an update: %v, %v, want the same", show(reflect.ValueOf(u.MaxSizeInMegabytes)), err)
	}
	topic, err := c.CreateTopic(ctx, "admin-partitioned-topic", &admin.CreateTopicOptions{
		Properties: &admin.TopicProperties{EnablePartitioning: ptr(true)}})
	if err != nil || *topic.MaxSizeInMegabytes != 16*1024 {
		t.Fatalf("partitioned topic: %v, %v", show(reflect.ValueOf(topic.MaxSizeInMegabytes)), err)
	}
	topic.EnablePartitioning = ptr(false)
	_, err = c.UpdateTopic(ctx, "admin-partitioned-topic", topic.TopicProperties, nil)
	wantStatus(t, "change of partitioning", err, http.StatusBadRequest, "Partitioning cannot be changed for Topic. ")
}

// A partitioned queue has 16 partitions of the requested size, also of the
// largest, and an update without a size keeps it.
func TestAdminPartitionedSizesOfAllKinds(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	for _, tt := range []struct {
		name  string
		asked *int32
		want  int32
	}{{"default", nil, 16 * 1024}, {"4096", ptr(int32(4096)), 16 * 4096}, {"largest", ptr(int32(5120)), 16 * 5120}} {
		name := "admin-partitioned-" + tt.name
		q, err := c.CreateQueue(ctx, name, &admin.CreateQueueOptions{Properties: &admin.QueueProperties{EnablePartitioning: ptr(true), MaxSizeInMegabytes: tt.asked}})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := c.GetQueue(ctx, name, nil)
		if err != nil || *q.MaxSizeInMegabytes != tt.want || *got.MaxSizeInMegabytes != tt.want {
			t.Errorf("%s: created %v, got %v, %v, want %d", tt.name, show(reflect.ValueOf(q.MaxSizeInMegabytes)), show(reflect.ValueOf(got.MaxSizeInMegabytes)), err, tt.want)
		}
		u, err := c.UpdateQueue(ctx, name, admin.QueueProperties{EnablePartitioning: ptr(true)}, nil)
		if err != nil || *u.MaxSizeInMegabytes != tt.want {
			t.Errorf("%s: updated: %v, %v, want %d", tt.name, show(reflect.ValueOf(u.MaxSizeInMegabytes)), err, tt.want)
		}
	}
}

// A subscription has a time of access from the beginning: that of its creation. A queue
// and a topic have none before they are used.
func TestAdminSubscriptionsHaveATimeOfAccess(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "admin-accessed", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSubscription(ctx, "admin-accessed", "s", nil); err != nil {
		t.Fatal(err)
	}
	got, err := c.GetSubscriptionRuntimeProperties(ctx, "admin-accessed", "s", nil)
	if err != nil || got.AccessedAt.IsZero() || !got.AccessedAt.Equal(got.CreatedAt) {
		t.Errorf("get: %+v, %v, want the time of creation", got, err)
	}
	page, err := c.NewListSubscriptionsRuntimePropertiesPager("admin-accessed", nil).NextPage(ctx)
	if err != nil || len(page.SubscriptionRuntimeProperties) != 1 || page.SubscriptionRuntimeProperties[0].AccessedAt.IsZero() {
		t.Errorf("list: %+v, %v, want one subscription with a time of access", page.SubscriptionRuntimeProperties, err)
	}
	topic, err := c.GetTopicRuntimeProperties(ctx, "admin-accessed", nil)
	if err != nil || !topic.AccessedAt.IsZero() {
		t.Errorf("topic: %+v, %v, want no time of access", topic, err)
	}
}

// The error for an absent entity has the spelling of the caller, and
// /Subscriptions/.
func TestNotFoundKeepsTheSpelling(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "admin-spelling", nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.DeleteQueue(ctx, "No-Such-Queue", nil)
	wantStatus(t, "delete a queue", err, http.StatusNotFound, "No-Such-Queue")
	_, err = c.UpdateSubscription(ctx, "Admin-Spelling", "No-Such-Sub", admin.SubscriptionProperties{}, nil)
	wantStatus(t, "update a subscription", err, http.StatusNotFound, "Admin-Spelling/Subscriptions/No-Such-Sub")
	_, err = c.DeleteSubscription(ctx, "No-Such-Topic", "No-Such-Sub", nil)
	wantStatus(t, "delete a subscription of no topic", err, http.StatusNotFound, "No-Such-Topic")
	_, err = c.DeleteRule(ctx, "Admin-Spelling", "No-Such-Sub", "No-Such-Rule", nil)
	wantStatus(t, "delete a rule", err, http.StatusNotFound, "Admin-Spelling/Subscriptions/No-Such-Sub")

	client := connect(t, shared.Connection())
	r, err := client.NewReceiverForSubscription("Admin-Spelling", "No-Such-Sub", nil)
	if err != nil {
		t.Fatal(err)
	}
	const missing = "/Admin-Spelling/Subscriptions/No-Such-Sub' could not be found"
	if _, err = r.ReceiveMessages(ctx, 1, nil); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("receive: %v, want %q", err, missing)
	}
	s, err := client.NewSender("No-Such-Queue", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err = s.SendMessage(ctx, &azservicebus.Message{}, nil); err == nil || !strings.Contains(err.Error(), "/No-Such-Queue' could not be found") {
		t.Errorf("send: %v, want the name of the queue as it was spelled", err)
	}
}

// A caller with a key gets "does not exist" for a queue or topic before "may
// not manage", as from the cloud: except for a request that creates one, and
// for the subscriptions of a topic. A caller without a key gets neither.
func TestAdminNotFoundComesBeforeRights(t *testing.T) {
	ctx, root := deadline(t), administer(t, shared.SecureConnection())
	if _, err := root.CreateTopic(ctx, "admin-known", nil); err != nil {
		t.Fatal(err)
	}
	listen := administer(t, fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=ListenOnly;SharedAccessKey=bGlzdGVuLW9ubHkta2V5", shared.Port))
	if q, err := listen.GetQueue(ctx, "admin-unknown", nil); q != nil || err != nil {
		t.Errorf("get a queue: %v, %v, want nil, which is how the client reports 404", q, err)
	}
	if t2, err := listen.GetTopicRuntimeProperties(ctx, "admin-unknown", nil); t2 != nil || err != nil {
		t.Errorf("get a topic: %v, %v, want nothing", t2, err)
	}
	if s, err := listen.GetSubscription(ctx, "admin-unknown", "none", nil); s != nil || err != nil {
		t.Errorf("get a subscription of no topic: %v, %v, want nothing", s, err)
	}
	_, err := listen.DeleteTopic(ctx, "admin-unknown", nil)
	wantStatus(t, "delete a topic", err, http.StatusNotFound, "")
	_, err = listen.UpdateQueue(ctx, "admin-unknown", admin.QueueProperties{}, nil)
	wantStatus(t, "update a queue", err, http.StatusUnauthorized, "Manage,EntityWrite")
	_, err = listen.GetSubscription(ctx, "admin-known", "none", nil)
	wantStatus(t, "get a subscription", err, http.StatusUnauthorized, "GetSubscription")
	_, err = listen.CreateQueue(ctx, "admin-unknown", nil)
	wantStatus(t, "create a queue", err, http.StatusUnauthorized, "Manage,EntityWrite")
	_, err = listen.GetTopic(ctx, "admin-known", nil)
	wantStatus(t, "get a topic", err, http.StatusUnauthorized, "Manage,EntityRead")
	forged := administer(t, fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=ListenOnly;SharedAccessKey=forged", shared.Port))
	_, err = forged.GetQueue(ctx, "admin-unknown", nil)
	wantStatus(t, "with a wrong key", err, http.StatusUnauthorized, "InvalidSignature")
}

func TestAdminForwarding(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	for _, name := range []string{"admin-target", "admin-graves"} {
		if _, err := c.CreateQueue(ctx, name, nil); err != nil {
			t.Fatal(err)
		}
	}
	absolute := "https://localhost:" + shared.Port + "/admin-target"
	for name, to := range map[string]string{"admin-by-name": "admin-target", "admin-by-url": absolute} {
		q, err := c.CreateQueue(ctx, name, &admin.CreateQueueOptions{
			Properties: &admin.QueueProperties{ForwardTo: &to, ForwardDeadLetteredMessagesTo: ptr("admin-graves")}})
		if err != nil {
			t.Fatalf("forward to %s: %v", to, err)
		}
		if *q.ForwardTo != to || *q.ForwardDeadLetteredMessagesTo != "admin-graves" {
			t.Errorf("forwards to %q and %q, want %q and admin-graves unchanged", *q.ForwardTo, *q.ForwardDeadLetteredMessagesTo, to)
		}
		open(t, name).send(name)
		if m := open(t, "admin-target").one(); string(m.Body) != name {
			t.Errorf("arrived: %q, want %q", m.Body, name)
		}
		q.ForwardTo = nil
		u, err := c.UpdateQueue(ctx, name, q.QueueProperties, nil)
		if err != nil || u.ForwardTo != nil {
			t.Errorf("without forwarding: %v, %v", u.ForwardTo, err)
		}
	}
}

func TestAdminListsByPages(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "admin-pages", nil); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("s%d", i)
		if _, err := c.CreateSubscription(ctx, "admin-pages", name, nil); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	for size, pages := range map[int32]int{0: 1, 3: 3, 7: 1, 100: 1} {
		var got []string
		n := 0
		for p := c.NewListSubscriptionsPager("admin-pages", &admin.ListSubscriptionsOptions{MaxPageSize: size}); p.More(); {
			page, err := p.NextPage(ctx)
			if err != nil {
				t.Fatalf("pages of %d: %v", size, err)
			}
			if len(page.Subscriptions) > 0 {
				n++
			}
			for _, s := range page.Subscriptions {
				got = append(got, s.SubscriptionName)
			}
		}
		if !slices.Equal(got, want) || n != pages {
			t.Errorf("pages of %d: %v in %d, want %v in %d", size, got, n, want, pages)
		}
	}
	var queues, runtime []string
	for p := c.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 10}); p.More(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Queues {
			queues = append(queues, q.QueueName)
		}
	}
	for p := c.NewListQueuesRuntimePropertiesPager(nil); p.More(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range page.QueueRuntimeProperties {
			runtime = append(runtime, q.QueueName)
		}
	}
	for _, name := range []string{"modes", "site/nested", "load"} {
		if !slices.Contains(queues, name) || !slices.Contains(runtime, name) {
			t.Errorf("%s is missing among %v or %v", name, queues, runtime)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(queues)))) != len(queues) {
		t.Errorf("a queue is listed twice: %v", queues)
	}
}

func TestAdminTopicsAndSubscriptions(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	topic, err := c.CreateTopic(ctx, "admin/topic", &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		DefaultMessageTimeToLive: ptr("PT3H"), RequiresDuplicateDetection: ptr(true), UserMetadata: ptr("mine"), SupportOrdering: ptr(false)}})
	if err != nil {
		t.Fatal(err)
	}
	if *topic.DefaultMessageTimeToLive != "PT3H" || !*topic.RequiresDuplicateDetection || *topic.UserMetadata != "mine" ||
		*topic.SupportOrdering || *topic.AutoDeleteOnIdle != forever {
		t.Errorf("topic: %+v", topic.TopicProperties)
	}
	topic.UserMetadata = ptr("yours")
	if u, err := c.UpdateTopic(ctx, "admin/topic", topic.TopicProperties, nil); err != nil || *u.UserMetadata != "yours" {
		t.Errorf("updated topic: %+v, %v", u, err)
	}
	sub, err := c.CreateSubscription(ctx, "admin/topic", "sub", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		LockDuration: ptr("PT20S"), RequiresSession: ptr(true), MaxDeliveryCount: ptr(int32(4)), DeadLetteringOnMessageExpiration: ptr(true),
		EnableDeadLetteringOnFilterEvaluationExceptions: ptr(false), UserMetadata: ptr("hers"), AutoDeleteOnIdle: ptr("PT1H"),
		DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.SQLFilter{Expression: "Priority = 'High'"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sub.TopicName != "admin/topic" || sub.SubscriptionName != "sub" || *sub.LockDuration != "PT20S" || !*sub.RequiresSession ||
		*sub.MaxDeliveryCount != 4 || *sub.EnableDeadLetteringOnFilterEvaluationExceptions || *sub.UserMetadata != "hers" {
		t.Errorf("subscription: %+v", sub.SubscriptionProperties)
	}
	if r, err := c.GetRule(ctx, "admin/topic", "sub", "first", nil); err != nil || r == nil ||
		!reflect.DeepEqual(r.Filter, &admin.SQLFilter{Expression: "Priority = 'High'"}) {
		t.Errorf("first rule: %+v, %v", r, err)
	}
	sub.MaxDeliveryCount = ptr(int32(9))
	if u, err := c.UpdateSubscription(ctx, "admin/topic", "sub", sub.SubscriptionProperties, nil); err != nil || *u.MaxDeliveryCount != 9 {
		t.Errorf("updated subscription: %+v, %v", u, err)
	}
	sub.RequiresSession = ptr(false)
	_, err = c.UpdateSubscription(ctx, "admin/topic", "sub", sub.SubscriptionProperties, nil)
	wantStatus(t, "change of sessions", err, http.StatusBadRequest, "The value for the RequiresSession property of an existing Subscription cannot be changed")
	_, err = c.CreateSubscription(ctx, "admin/topic", "sub", nil)
	wantStatus(t, "create again", err, http.StatusConflict, "")
	if got, err := c.GetSubscription(ctx, "admin/topic", "none", nil); got != nil || err != nil {
		t.Errorf("unknown subscription: %v, %v, want nothing", got, err)
	}
	if _, err := c.DeleteSubscription(ctx, "admin/topic", "sub", nil); err != nil {
		t.Error(err)
	}
	if _, err := c.DeleteTopic(ctx, "admin/topic", nil); err != nil {
		t.Error(err)
	}
	if got, err := c.GetTopic(ctx, "admin/topic", nil); got != nil || err != nil {
		t.Errorf("deleted topic: %v, %v, want nothing", got, err)
	}
}

func TestAdminRules(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "admin-rules", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSubscription(ctx, "admin-rules", "s", nil); err != nil {
		t.Fatal(err)
	}
	before, err := c.GetTopicRuntimeProperties(ctx, "admin-rules", nil)
	if err != nil || before.SubscriptionCount != 1 || before.SQLFilterCount != 1 || before.CorrelationFilterCount != 0 {
		t.Errorf("a new subscription: %+v, %v, want one SQL filter", before, err)
	}
	values := map[string]any{
		"@text": "a<b&c", "@int": int64(7), "@double": 1.5, "@flag": true, "@at": time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
	rules := []admin.RuleProperties{
		{Name: "true", Filter: &admin.TrueFilter{}},
		{Name: "false", Filter: &admin.FalseFilter{}},
		{Name: "sql", Filter: &admin.SQLFilter{Expression: "color = @text AND size > @int OR price < @double", Parameters: values}},
		{Name: "bare", Filter: &admin.SQLFilter{Expression: "MessageID=rule1"}},
		{Name: "action", Filter: &admin.SQLFilter{Expression: "1=1"}, Action: &admin.SQLAction{Expression: "SET a = @text; REMOVE b", Parameters: values}},
		{Name: "correlation", Filter: &admin.CorrelationFilter{
			ContentType: ptr("text/plain"), CorrelationID: ptr("c"), MessageID: ptr("m"), ReplyTo: ptr("r"), ReplyToSessionID: ptr("rs"),
			SessionID: ptr("s"), Subject: ptr("sub"), To: ptr("t"), ApplicationProperties: map[string]any{"tenant": "contoso", "vip": true, "n": int64(3)},
		}},
	}
	for _, want := range rules {
		got, err := c.CreateRule(ctx, "admin-rules", "s", &admin.CreateRuleOptions{Name: &want.Name, Filter: want.Filter, Action: want.Action})
		if err != nil {
			t.Errorf("create rule %s: %v", want.Name, err)
			continue
		}
		if !reflect.DeepEqual(got.RuleProperties, want) {
			t.Errorf("created %+v, want %+v", got.RuleProperties, want)
		}
		again, err := c.GetRule(ctx, "admin-rules", "s", want.Name, nil)
		if err != nil || !reflect.DeepEqual(again.RuleProperties, want) {
			t.Errorf("got %+v, %v, want %+v", again, err, want)
		}
	}
	after, err := c.GetTopicRuntimeProperties(ctx, "admin-rules", nil)
	if err != nil || after.SQLFilterCount != 6 || after.CorrelationFilterCount != 1 {
		t.Errorf("with all rules: %+v, %v, want 6 SQL filters and one correlation", after, err)
	}
	names := []string{"$Default", "action", "bare", "correlation", "false", "sql", "true"} // by name, not by age
	var listed []string
	for p := c.NewListRulesPager("admin-rules", "s", &admin.ListRulesOptions{MaxPageSize: 2}); p.More(); {
		page, err := p.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rules {
			listed = append(listed, r.Name)
		}
	}
	if !slices.Equal(listed, names) {
		t.Errorf("listed %v, want %v", listed, names)
	}
	u, err := c.UpdateRule(ctx, "admin-rules", "s", admin.RuleProperties{Name: "true", Filter: &admin.SQLFilter{Expression: "x = 1"}})
	if err != nil || !reflect.DeepEqual(u.Filter, &admin.SQLFilter{Expression: "x = 1"}) {
		t.Errorf("updated rule: %+v, %v", u, err)
	}
	if _, err := c.DeleteRule(ctx, "admin-rules", "s", "$Default", nil); err != nil {
		t.Error(err)
	}
	made, err := c.CreateRule(ctx, "admin-rules", "s", &admin.CreateRuleOptions{}) // without name and filter
	if err != nil || made.Name != "$Default" || !reflect.DeepEqual(made.Filter, &admin.TrueFilter{}) {
		t.Errorf("rule without anything: %+v, %v, want $Default that takes everything", made, err)
	}
	_, err = c.CreateRule(ctx, "admin-rules", "s", &admin.CreateRuleOptions{Name: ptr("sql"), Filter: &admin.TrueFilter{}})
	wantStatus(t, "create again", err, http.StatusConflict, "")
	_, err = c.CreateRule(ctx, "admin-rules", "s", &admin.CreateRuleOptions{Name: ptr("bad"), Filter: &admin.SQLFilter{Expression: "a = "}})
	wantStatus(t, "bad SQL", err, http.StatusBadRequest, "")
	_, err = c.CreateRule(ctx, "admin-rules", "s", &admin.CreateRuleOptions{Name: ptr("bad"), Action: &admin.SQLAction{Expression: "SET sys.SequenceNumber = 1"}})
	wantStatus(t, "action on what is not to be set", err, http.StatusBadRequest, "")
}

func TestAdminRuntimeCounts(t *testing.T) {
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateQueue(ctx, "admin-counts", nil); err != nil {
		t.Fatal(err)
	}
	q := open(t, "admin-counts")
	empty, err := c.GetQueueRuntimeProperties(ctx, "admin-counts", nil)
	if err != nil || empty.TotalMessageCount != 0 || empty.SizeInBytes != 0 || empty.CreatedAt.IsZero() || !empty.AccessedAt.IsZero() {
		t.Errorf("new queue: %+v, %v", empty, err)
	}
	q.send("ready", "locked", "dead")
	if err := q.SendMessage(ctx, &azservicebus.Message{Body: []byte("later"), ScheduledEnqueueTime: ptr(time.Now().Add(time.Hour))}, nil); err != nil {
		t.Fatal(err)
	}
	got := q.receive(2)
	if err := q.DeadLetterMessage(ctx, got[0], nil); err != nil {
		t.Fatal(err)
	}
	full, err := c.GetQueueRuntimeProperties(ctx, "admin-counts", nil)
	if err != nil || full.ActiveMessageCount != 2 || full.DeadLetterMessageCount != 1 || full.ScheduledMessageCount != 1 ||
		full.TotalMessageCount != 4 || full.SizeInBytes == 0 || full.AccessedAt.IsZero() {
		t.Errorf("counts: %+v, %v, want 2 active (one of them locked), 1 dead, 1 scheduled", full, err)
	}

	if _, err := c.CreateTopic(ctx, "admin-counts-topic", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSubscription(ctx, "admin-counts-topic", "s", nil); err != nil {
		t.Fatal(err)
	}
	s, err := q.NewSender("admin-counts-topic", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*azservicebus.Message{{Body: []byte("now")}, {Body: []byte("later"), ScheduledEnqueueTime: ptr(time.Now().Add(time.Hour))}} {
		if err := s.SendMessage(ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	topic, err := c.GetTopicRuntimeProperties(ctx, "admin-counts-topic", nil)
	if err != nil || topic.ScheduledMessageCount != 1 || topic.SizeInBytes == 0 || topic.SubscriptionCount != 1 {
		t.Errorf("topic: %+v, %v, want 1 scheduled", topic, err)
	}
	sub, err := c.GetSubscriptionRuntimeProperties(ctx, "admin-counts-topic", "s", nil)
	if err != nil || sub.ActiveMessageCount != 1 || sub.TotalMessageCount != 1 {
		t.Errorf("subscription: %+v, %v, want 1 active", sub, err)
	}
}

func TestAdminNeedsTheRightToManage(t *testing.T) {
	ctx, root := deadline(t), administer(t, shared.SecureConnection())
	_, err := root.CreateQueue(ctx, "admin-guarded", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		AuthorizationRules: []admin.AuthorizationRule{{AccessRights: []admin.AccessRight{admin.AccessRightListen}, KeyName: ptr("reader"), PrimaryKey: ptr("reader key")}}}})
	if err != nil {
		t.Fatal(err)
	}
	as := func(name, key string) *admin.Client {
		return administer(t, fmt.Sprintf("Endpoint=sb://localhost:%s;SharedAccessKeyName=%s;SharedAccessKey=%s", shared.Port, name, key))
	}
	reader := as("reader", "reader key")
	_, err = reader.GetQueue(ctx, "admin-guarded", nil)
	wantStatus(t, "get", err, http.StatusUnauthorized, "Manage,EntityRead claims required for this operation")
	_, err = reader.UpdateQueue(ctx, "admin-guarded", admin.QueueProperties{}, nil)
	wantStatus(t, "update", err, http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityWrite")
	_, err = reader.DeleteQueue(ctx, "admin-guarded", nil)
	wantStatus(t, "delete", err, http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityDelete.")
	_, err = as("reader", "another key").GetQueue(ctx, "admin-guarded", nil)
	wantStatus(t, "wrong key", err, http.StatusUnauthorized, "InvalidSignature")

	_, err = root.CreateTopic(ctx, "admin-guarded-topic", &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		AuthorizationRules: []admin.AuthorizationRule{{AccessRights: []admin.AccessRight{admin.AccessRightListen}, KeyName: ptr("reader"), PrimaryKey: ptr("reader key")}}}})
	if err != nil {
		t.Fatal(err)
	}
	const text = "401 SubCode=40100: Unauthorized : Unauthorized access for '%s"
	_, err = reader.GetSubscription(ctx, "admin-guarded-topic", "s", nil)
	wantStatus(t, "get subscription", err, http.StatusUnauthorized, fmt.Sprintf(text, "GetSubscription'"))
	_, err = reader.NewListSubscriptionsPager("admin-guarded-topic", nil).NextPage(ctx)
	wantStatus(t, "list subscriptions", err, http.StatusUnauthorized, fmt.Sprintf(text, "EnumerateSubscriptions' operation"))
	_, err = reader.CreateSubscription(ctx, "admin-guarded-topic", "s", nil)
	wantStatus(t, "create subscription", err, http.StatusUnauthorized, fmt.Sprintf(text, "CreateOrUpdateSubscription'"))
	_, err = reader.DeleteSubscription(ctx, "admin-guarded-topic", "s", nil)
	wantStatus(t, "delete subscription", err, http.StatusUnauthorized, fmt.Sprintf(text, "DeleteSubscription'"))
}

// token is a credential of an unreachable identity provider.
type token struct{}

func (token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "header.claims.signature", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func TestAdminWithTokenCredential(t *testing.T) {
	c, err := admin.NewClient("localhost:"+shared.Port, token{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := c.GetNamespaceProperties(deadline(t), nil)
	if err != nil || ns.Name == "" || ns.SKU != "Standard" || ns.CreatedTime.IsZero() {
		t.Errorf("namespace: %+v, %v", ns, err)
	}
}
