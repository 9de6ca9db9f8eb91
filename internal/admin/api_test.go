// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

func TestQueueByItsWholeLife(t *testing.T) {
	r := start(t)
	const path = apiRoot + "/queues/site%2Forders" // names may have slashes
	r.want(404, "GET", path, "")
	r.want(201, "POST", apiRoot+"/queues", `{"name":"site/orders","maxDeliveryCount":3,"lockDuration":"30s"}`)
	if got := r.want(409, "POST", apiRoot+"/queues", `{"name":"Site/Orders"}`); got.code() != "exists" {
		t.Errorf("a second one: %s", got.body)
	}
	var q Entity[entity.Queue]
	r.want(200, "GET", path, "").into(t, &q)
	if q.Definition.MaxDeliveryCount != 3 || q.Definition.LockDuration.Std() != 30*time.Second || q.Runtime.CreatedAt.IsZero() {
		t.Errorf("created: %+v", q)
	}
	r.want(200, "PATCH", path, `{"userMetadata":"mine","maxDeliveryCount":null}`).into(t, &q)
	if q.Definition.UserMetadata != "mine" || q.Definition.MaxDeliveryCount != 10 || q.Definition.LockDuration.Std() != 30*time.Second {
		t.Errorf("patched: %+v, want the set properties changed, null reset to its default, the rest kept", q.Definition)
	}
	q = Entity[entity.Queue]{}
	r.want(200, "PUT", path, `{"maxDeliveryCount":5}`).into(t, &q)
	if q.Definition.MaxDeliveryCount != 5 || q.Definition.UserMetadata != "" {
		t.Errorf("put: %+v, want what was left out back at its default", q.Definition)
	}
	r.want(201, "PUT", apiRoot+"/queues/other", `{}`)
	var l list[Entity[entity.Queue]]
	r.want(200, "GET", apiRoot+"/queues?top=1&skip=1", "").into(t, &l)
	if l.Total != 2 || len(l.Items) != 1 || l.Items[0].Definition.Name != "site/orders" {
		t.Errorf("second page: %+v", l)
	}
	r.want(200, "GET", apiRoot+"/queues?prefix=SITE", "").into(t, &l)
	if l.Total != 1 {
		t.Errorf("by prefix: %+v", l)
	}
	r.want(204, "DELETE", path, "")
	r.want(404, "DELETE", path, "")
}

func TestTopicsSubscriptionsAndRules(t *testing.T) {
	r := start(t)
	r.want(201, "POST", apiRoot+"/topics", `{"name":"events"}`)
	r.want(200, "PATCH", apiRoot+"/topics/events", `{"userMetadata":"x"}`)
	r.want(200, "PUT", apiRoot+"/topics/events", `{}`)
	const subs = apiRoot + "/topics/events/subscriptions"
	r.want(201, "POST", subs, `{"name":"all"}`)
	r.want(201, "PUT", subs+"/high", `{"rules":[{"name":"r","filter":{"sql":"Priority = 'High'"}}]}`)
	r.want(200, "PATCH", subs+"/high", `{"maxDeliveryCount":4}`)
	r.want(404, "PUT", apiRoot+"/topics/none/subscriptions/s", `{}`)
	var s Entity[entity.Subscription]
	r.want(200, "GET", subs+"/high", "").into(t, &s)
	if len(s.Definition.Rules) != 1 || s.Definition.Rules[0].Name != "r" || s.Definition.MaxDeliveryCount != 4 {
		t.Errorf("subscription: %+v", s.Definition)
	}
	r.want(201, "POST", subs+"/high/rules", `{"name":"c","filter":{"correlation":{"label":"urgent","properties":{"n":{"type":"int","value":"5"}}}}}`)
	r.want(409, "POST", subs+"/high/rules", `{"name":"c"}`)
	r.want(200, "PUT", subs+"/high/rules/c", `{"filter":{"sql":"a = 1"},"action":{"sql":"SET b = 2"}}`)
	r.want(201, "PUT", subs+"/high/rules/d", `{"filter":{"kind":"false"}}`)
	if got := r.want(400, "PUT", subs+"/high/rules/d", `{"filter":{"sql":"a = "}}`); !strings.Contains(got.body, "1:5") {
		t.Errorf("bad SQL: %s, want its position", got.body)
	}
	r.want(200, "GET", subs+"/high/rules/c", "")
	r.want(204, "DELETE", subs+"/high/rules/d", "")
	var l list[entity.Rule]
	r.want(200, "GET", subs+"/high/rules", "").into(t, &l)
	if l.Total != 2 {
		t.Errorf("rules: %+v", l)
	}
	r.want(200, "GET", subs, "")
	r.want(200, "GET", apiRoot+"/topics", "")
	r.want(200, "GET", apiRoot+"/topics/events", "")

	var tried Trials
	r.want(200, "POST", apiRoot+"/topics/events/try", `{"properties":{"Priority":"High"}}`).into(t, &tried)
	if !slices.Equal(tried.Subscriptions, []string{"all", "high"}) || len(tried.Rules) != 3 || tried.Rules[1].Why == "" {
		t.Errorf("a message of high priority: %+v", tried)
	}
	r.want(200, "POST", apiRoot+"/topics/events/try", `{"properties":{"Priority":"Low"}}`).into(t, &tried)
	if !slices.Equal(tried.Subscriptions, []string{"all"}) {
		t.Errorf("a message of low priority: %+v", tried)
	}
	r.want(204, "DELETE", subs+"/high", "")
	r.want(204, "DELETE", apiRoot+"/topics/events", "")
}

func TestBadRequestsChangeNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresSession: true})
	tests := []struct {
		method, path, body string
		status             int
		code, text         string
	}{
		{"POST", "/queues", `{"name":"a","lockDuration":"9h","maxDeliveryCount":-1}`, 400, "invalid", "maxDeliveryCount"},
		{"POST", "/queues", `{"name":"a","lockduration2":"1m"}`, 400, "bad_request", "lockduration2"},
		{"POST", "/queues", `{"name":"a"} {}`, 400, "bad_request", "after the end"},
		{"POST", "/queues", `{"name":5}`, 400, "bad_request", "name"},
		{"POST", "/queues", `{`, 400, "bad_request", ""},
		{"POST", "/queues", ``, 400, "bad_request", ""},
		{"POST", "/queues", `{"name":"/bad//name"}`, 400, "invalid", "name"},
		{"POST", "/queues", `{"name":"a","forwardTo":"a"}`, 400, "invalid", "itself"},
		{"POST", "/queues", `{"name":"a","forwardTo":"none"}`, 400, "invalid", "does not exist"},
		{"POST", "/queues", `"` + strings.Repeat("x", limits.Body+1) + `"`, 413, "too_large", ""},
		{"PUT", "/queues/q", `{"requiresSession":false}`, 400, "invalid", "RequiresSession"},
		{"PUT", "/queues/q", `{"name":"other"}`, 400, "bad_request", "path"},
		{"PATCH", "/queues/q", `{"name":"other"}`, 400, "bad_request", "path"},
		{"PATCH", "/queues/q", `[]`, 400, "bad_request", ""},
		{"PATCH", "/queues/none", `{}`, 404, "not_found", ""},
		{"GET", "/queues?top=x", ``, 400, "bad_request", "top"},
		{"GET", "/nothing", ``, 404, "not_found", "openapi.json"},
		{"DELETE", "/namespace", ``, 405, "method_not_allowed", "GET"},
		{"GET", "/queues/q/messages?filter=a%20%3D", ``, 400, "syntax", ""},
		{"GET", "/queues/q/messages?from=x", ``, 400, "bad_request", "from"},
		{"GET", "/queues/q/messages/x", ``, 400, "bad_request", "x"},
		{"GET", "/queues/q/messages/7", ``, 404, "message_not_found", ""},
		{"DELETE", "/queues/q/messages/7", ``, 404, "message_not_found", ""},
		{"DELETE", "/queues/q/messages?before=x", ``, 400, "bad_request", "before"},
		{"POST", "/queues/q/messages", `{"body":"no session"}`, 400, "session_required", ""},
		{"POST", "/queues/q/messages", `[]`, 400, "bad_request", "0 messages"},
		{"POST", "/queues/q/messages", `{"bodyy":1}`, 400, "bad_request", "bodyy"},
		{"POST", "/queues/q/messages", `{"body":"%%","bodyType":"base64"}`, 400, "bad_request", "base64"},
		{"POST", "/queues/q/messages", `{"body":1,"bodyType":"text"}`, 400, "bad_request", "string"},
		{"POST", "/queues/q/messages", `{"properties":{"a":[1]}}`, 400, "bad_request", "a"},
		{"POST", "/queues/none/messages", `{}`, 404, "not_found", ""},
		{"POST", "/queues/q/deadletters/redrive", `{"to":"none"}`, 404, "not_found", ""},
		{"PUT", "/queues/none/paused", `{}`, 404, "not_found", ""},
	}
	for _, tt := range tests {
		got := r.do(tt.method, apiRoot+tt.path, tt.body)
		if got.status != tt.status || got.code() != tt.code || !strings.Contains(got.body, tt.text) {
			t.Errorf("%s %s %.60s: %d %s, want %d %s with %q", tt.method, tt.path, tt.body, got.status, got.body, tt.status, tt.code, tt.text)
		}
	}
	if qs := r.b.Queues(); len(qs) != 1 || !qs[0].RequiresSession {
		t.Errorf("queues afterwards: %+v", qs)
	}
	var f failure
	r.do("POST", apiRoot+"/queues", `{"name":"a","lockDuration":"9h","maxDeliveryCount":-1}`).into(t, &f)
	if len(f.Error.Details) != 2 {
		t.Errorf("details: %+v, want both faults", f.Error)
	}
}

// However many try at once, one creates the queue and the others get a
// conflict.
func TestConcurrentCreates(t *testing.T) {
	r := start(t)
	statuses := make(chan int, 20)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				statuses <- r.do("POST", apiRoot+"/queues", `{"name":"q"}`).status
				return
			}
			statuses <- r.do("PUT", "/q?api-version=2021-05", entry(`<QueueDescription/>`)).status
		})
	}
	wg.Wait()
	close(statuses)
	count := map[int]int{}
	for s := range statuses {
		count[s]++
	}
	if count[201] != 1 || count[409] != 19 {
		t.Errorf("statuses %v, want one 201 and nineteen 409", count)
	}
}

func TestRightsAreNeeded(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", AuthorizationRules: entity.AuthorizationRules{
		{KeyName: "local", Rights: []entity.Right{entity.Manage}, PrimaryKey: "local key"}}})
	r.queue(entity.Queue{Name: "other"})
	soon := time.Now().Add(time.Hour)
	sas := func(name, resource string, end time.Time) string {
		return access.SignToken(access.Rule{Name: name, PrimaryKey: name + " key"}, resource, end)
	}
	for _, tt := range []struct {
		credentials, method, path, body string
		status                          int
	}{
		{"", "GET", "/queues", "", 401},
		{"Basic !!", "GET", "/queues", "", 401},
		{"Digest x", "GET", "/queues", "", 401},
		{"Bearer a.b.c", "GET", "/queues", "", 401},
		{sas("root", "https://localhost/", soon), "GET", "/queues", "", 200},
		{"sharedaccesssignature " + strings.TrimPrefix(sas("root", "https://localhost/", soon), "SharedAccessSignature "), "GET", "/queues", "", 200},
		{"Bearer " + sas("root", "https://localhost/", soon), "GET", "/queues", "", 200},
		{sas("root", "https://localhost/", time.Now().Add(-time.Hour)), "GET", "/queues", "", 401},
		{sas("root", "https://localhost/q", soon), "GET", "/queues", "", 403},
		{sas("root", "https://localhost/q", soon), "GET", "/queues/q", "", 200},
		{sas("root", "https://localhost/api/v1/queues/q", soon), "GET", "/queues/q", "", 403}, // an entity may be called api
		{sas("local", "https://localhost/q", soon), "PATCH", "/queues/q", `{"userMetadata":"x"}`, 200},
		{sas("local", "https://localhost/q", soon), "PATCH", "/queues/q", `{"forwardTo":"other"}`, 403},
		{sas("local", "https://localhost/q", soon), "POST", "/queues/q/deadletters/redrive", `{"to":"other"}`, 403},
		{sas("local", "https://localhost/q", soon), "GET", "/queues/other", "", 403},
		{sas("sender", "https://localhost/q", soon), "POST", "/queues/q/messages", `{"body":"x"}`, 201},
		{sas("sender", "https://localhost/q", soon), "GET", "/queues/q/messages", "", 403},
		{sas("listener", "https://localhost/q", soon), "GET", "/queues/q/messages", "", 200},
		{sas("listener", "https://localhost/q", soon), "DELETE", "/queues/q", "", 403},
	} {
		var headers []string
		if tt.credentials != "" {
			headers = []string{"Authorization", tt.credentials}
		}
		got := r.as("nobody", tt.method, apiRoot+tt.path, tt.body, headers...)
		if got.status != tt.status {
			t.Errorf("%.60s: %s %s: %d %s, want %d", tt.credentials, tt.method, tt.path, got.status, got.body, tt.status)
		}
		if (got.status == 401) != (got.header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s %s: %d with WWW-Authenticate %q", tt.method, tt.path, got.status, got.header.Get("WWW-Authenticate"))
		}
	}
}

func TestNamespaceConnectionsAndPause(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "POST", apiRoot+"/topics/t/messages", `[{"body":"1"},{"body":"2"}]`)
	var n Namespace
	r.want(200, "GET", apiRoot+"/namespace", "").into(t, &n)
	if n.Queues != 1 || n.Topics != 1 || n.Subscriptions != 1 || n.Counts.Active != 2 {
		t.Errorf("namespace: %+v", n)
	}
	if want := (StoredMemory{Limit: 800, Messages: 4, MessagesLimit: 600, Definitions: 5, Groups: 6}); n.Memory != want {
		t.Errorf("its stored memory: %+v, want %+v", n.Memory, want)
	}
	var cs Connections
	r.want(200, "GET", apiRoot+"/connections", "").into(t, &cs)
	if len(cs.Connections) != 3 || cs.Total != 3 || len(cs.Connections[0].Links) != 0 || cs.Connections[2].Links[1].Address != "q" {
		t.Errorf("connections: %+v", cs)
	}
	r.want(200, "GET", apiRoot+"/connections?skip=1&top=1", "").into(t, &cs)
	if len(cs.Connections) != 1 || cs.Total != 3 || cs.Connections[0].Peer != "10.0.0.2:1" {
		t.Errorf("a page of connections: %+v", cs)
	}
	r.want(200, "PUT", apiRoot+"/queues/q/paused", `{"sending":true}`)
	if got := r.want(403, "POST", apiRoot+"/queues/q/messages", `{}`); got.code() != "disabled" {
		t.Errorf("sending to a paused queue: %s", got.body)
	}
	var q Entity[entity.Queue]
	r.want(200, "GET", apiRoot+"/queues/q", "").into(t, &q)
	if q.Paused != (broker.Pause{Sending: true}) {
		t.Errorf("paused: %+v", q.Paused)
	}
	r.want(200, "DELETE", apiRoot+"/queues/q/paused", "")
	r.want(201, "POST", apiRoot+"/queues/q/messages", `{}`)
	r.want(200, "PUT", apiRoot+"/topics/t/subscriptions/s/paused", `{"receiving":true}`)
	r.want(200, "PUT", apiRoot+"/topics/t/paused", fmt.Sprintf(`{"sending":%t}`, false))
}

// A queue that would deliver nothing is rejected; earlier it got the default.
func TestMaxDeliveryCountOfZeroIsRefused(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxDeliveryCount: 3})
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/queues", `{"name":"a","maxDeliveryCount":0}`},
		{"PUT", "/queues/q", `{"maxDeliveryCount":0}`},
		{"PATCH", "/queues/q", `{"maxDeliveryCount":0}`},
	} {
		if got := r.do(c.method, apiRoot+c.path, c.body); got.status != 400 || !strings.Contains(got.body, "0 is outside 1..") {
			t.Errorf("%s %s %s: %d %s, want 400", c.method, c.path, c.body, got.status, got.body)
		}
	}
	if q, err := r.b.Queue("q"); err != nil || q.MaxDeliveryCount != 3 {
		t.Errorf("queue afterwards: %+v, %v", q, err)
	}
}
