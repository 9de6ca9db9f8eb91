// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const testPolicy = `{"classes": [
	{"name": "paid", "level": 8, "when": "plan = 'paid'", "objective": {"wait": "10s"}},
	{"name": "free", "level": 3}]}`

func TestPolicyIsReadTriedAndChanged(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "orders"})
	r.topic("events", entity.Subscription{Name: "all"})
	r.want(201, http.MethodPost, "/api/v1/queues/orders/messages", `[{"body": "a", "properties": {"plan": "paid"}}, {"body": "b"}]`)

	var dry broker.DryRun
	r.want(200, http.MethodPost, "/api/v1/policies/orders/dry-run", testPolicy).into(t, &dry)
	if dry.Looked != 2 || dry.Changed != 2 || len(dry.Transitions) != 2 || len(dry.Changes) == 0 {
		t.Errorf("dry run: %+v", dry)
	}
	var state broker.PolicyState
	r.want(200, http.MethodGet, "/api/v1/policies/orders", "").into(t, &state)
	if state.Revision != 0 {
		t.Errorf("the dry run made revision %d", state.Revision)
	}
	for _, path := range []string{"/api/v1/policies/orders", "/api/v1/policies/events%2Fsubscriptions%2Fall"} {
		r.want(200, http.MethodPut, path, testPolicy).into(t, &state)
		if state.Revision != 1 || !state.Applied || len(state.Consequences) == 0 {
			t.Errorf("%s: %+v", path, state)
		}
	}
	bad := r.want(400, http.MethodPut, "/api/v1/policies/orders", `{"classes": [{"name": "x", "when": "a ="}]}`)
	var f failure
	bad.into(t, &f)
	if len(f.Error.Details) != 1 || f.Error.Details[0].Field != "classes[0].when" {
		t.Errorf("faults: %+v", f)
	}
	r.want(200, http.MethodDelete, "/api/v1/policies/orders", "").into(t, &state)
	if state.Revision != 2 || string(state.Policy) != "{}" {
		t.Errorf("after removal: %+v", state)
	}
	if got := r.as("listener", http.MethodPut, "/api/v1/policies/orders", testPolicy); got.status != 403 {
		t.Errorf("a listener changes the policy: %d", got.status)
	}
	r.want(404, http.MethodGet, "/api/v1/policies/none", "")
}

// A definition without a policy keeps it; null removes it.
func TestDefinitionsKeepThePolicyUnlessItIsNull(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	for _, path := range []string{apiRoot + "/queues/q", apiRoot + "/topics/t/subscriptions/s"} {
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			for body, want := range map[string]bool{
				`{"lockDuration": "1m"}`: true, `{"lockDuration": null}`: true, `{"policy": null}`: false,
			} {
				r.want(200, http.MethodPatch, path, `{"policy": `+testPolicy+`}`)
				var got struct{ Definition map[string]any }
				r.want(200, method, path, body).into(t, &got)
				if has := got.Definition["policy"] != nil; has != want {
					t.Errorf("%s %s with %s: policy kept is %t, want %t", method, path, body, has, want)
				}
			}
		}
	}
}

// Every property of a definition takes null for its default.
func TestPatchTakesNullForEveryProperty(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	for path, definition := range map[string]any{
		"/queues/q": entity.Queue{}, "/topics/t": entity.Topic{}, "/topics/t/subscriptions/s": entity.Subscription{},
	} {
		for field := range reflect.TypeOf(definition).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			r.want(200, http.MethodPatch, apiRoot+path, `{"`+name+`": null}`)
		}
	}
}

func TestObjectivesDemandAndExplanations(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "orders", Policy: []byte(testPolicy)})
	r.want(201, http.MethodPost, "/api/v1/queues/orders/messages", `{"body": "a", "properties": {"plan": "paid"}}`)

	var all list[broker.Objectives]
	r.want(200, http.MethodGet, "/api/v1/objectives", "").into(t, &all)
	var one broker.Objectives
	r.want(200, http.MethodGet, "/api/v1/objectives/orders", "").into(t, &one)
	if len(all.Items) != 1 || one.Entity != "orders" || one.Classes[0].Waiting != 1 {
		t.Errorf("objectives: %+v, %+v", all, one)
	}
	var d broker.Demand
	r.want(200, http.MethodGet, "/api/v1/demand/orders?floor=3&ceiling=5&headroom=0.5", "").into(t, &d)
	if d.Value != 3 {
		t.Errorf("demand %+v, want the floor", d)
	}
	r.want(400, http.MethodGet, "/api/v1/demand/orders?headroom=lots", "")
	var x Explained
	r.want(200, http.MethodGet, "/api/v1/queues/orders/messages/1/explain", "").into(t, &x)
	if x.Class != "paid" || !strings.Contains(x.Text, "Message 1 of orders is waiting") {
		t.Errorf("explanation %+v", x)
	}
	r.want(404, http.MethodGet, "/api/v1/queues/orders/messages/9/explain", "")
	r.want(400, http.MethodGet, "/api/v1/queues/orders/messages/x/explain", "")

	metrics := r.want(200, http.MethodGet, "/metrics", "").body
	for _, line := range []string{
		`triagemq_class_messages_ready{class="paid",entity="orders"} 1`,
		`triagemq_class_objective_state{class="paid",entity="orders"} 1`,
		`triagemq_class_messages_total{class="paid",entity="orders",event="arrived"} 1`,
		`triagemq_class_wait_seconds_bucket{class="paid",entity="orders",le="+Inf"} 0`,
		`triagemq_demand_workers{entity="orders"} 1`,
		`triagemq_operations_total{entity="orders",operation="send"} 1`,
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("%s is missing in the metrics", line)
		}
	}
}
