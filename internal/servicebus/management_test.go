// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// unmarshal decodes a message out of a reply.
func unmarshal(t *testing.T, raw any) *amqp.Message {
	t.Helper()
	b, ok := raw.([]byte)
	if !ok {
		t.Fatalf("message is %T, want binary", raw)
	}
	m := new(amqp.Message)
	if err := m.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	return m
}

// entries returns the maps in a list of a reply.
func entries(t *testing.T, body map[string]any, key string) []map[string]any {
	t.Helper()
	list, ok := body[key].([]any)
	if !ok {
		t.Fatalf("%s is %T, want a list", key, body[key])
	}
	var maps []map[string]any
	for _, e := range list {
		maps = append(maps, e.(map[string]any))
	}
	return maps
}

func TestRenewLock(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "x"})
	m := p.next(p.receiver("q", peekLock()))
	token := m.DeliveryAnnotations["x-opt-lock-token"].(amqp.UUID)
	mgmt := p.rpc("q/$management")
	body := mgmt.manage("renew-lock", map[string]any{"lock-tokens": []amqp.UUID{token}}, 200)
	until, ok := body["expirations"].([]time.Time)
	if !ok || len(until) != 1 || time.Until(until[0]) < 30*time.Second {
		t.Errorf("expirations is %T %[1]v, want an array with a time to come", body["expirations"])
	}

	token[0] ^= 0xff
	reply := mgmt.call("com.microsoft:renew-lock", map[string]any{"lock-tokens": []amqp.UUID{token}}, nil)
	checkStatus(t, "unknown token", reply, 410)
	if got := reply.ApplicationProperties["errorCondition"]; got != "com.microsoft:message-lock-lost" {
		t.Errorf("condition %v", got)
	}
	if got := reply.ApplicationProperties["statusDescription"]; got != textLockLost {
		t.Errorf("text %v", got)
	}
}

func TestPeekAndSchedule(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	mgmt := p.rpc("q/$management")
	peek := map[string]any{"from-sequence-number": int64(0), "message-count": int32(10)}
	mgmt.manage("peek-message", peek, 204)

	p.send("q", &amqp.Message{Value: "first"})
	later := &amqp.Message{Value: "later", Annotations: amqp.Annotations{"x-opt-scheduled-enqueue-time": time.Now().Add(time.Hour)}}
	raw, err := later.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	scheduled := mgmt.manage("schedule-message", map[string]any{
		"messages": []any{map[string]any{"message-id": "a", "message": raw}},
	}, 200)
	seqs, ok := scheduled["sequence-numbers"].([]int64)
	if !ok || !reflect.DeepEqual(seqs, []int64{2}) {
		t.Fatalf("sequence-numbers is %T %[1]v, want an array with 2", scheduled["sequence-numbers"])
	}

	shown := entries(t, mgmt.manage("peek-message", peek, 200), "messages")
	if len(shown) != 2 {
		t.Fatalf("peeked %d messages, want 2", len(shown))
	}
	for i, want := range []struct {
		value string
		state int32
	}{{"first", 0}, {"later", 2}} {
		m := unmarshal(t, shown[i]["message"])
		if m.Value != want.value || m.Annotations["x-opt-message-state"] != want.state ||
			m.Annotations["x-opt-sequence-number"] != int64(i+1) || m.Header == nil || m.Properties == nil {
			t.Errorf("message %d: %v with %v, want %s in state %d", i, m.Value, m.Annotations, want.value, want.state)
		}
	}

	mgmt.manage("cancel-scheduled-message", map[string]any{"sequence-numbers": []int64{2}}, 200)
	mgmt.manage("cancel-scheduled-message", map[string]any{"sequence-numbers": []int64{2}}, 404)
}

func TestDeferredBySequenceNumber(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "x"})
	r := p.receiver("q", peekLock())
	m := p.next(r)
	if err := r.ModifyMessage(p.ctx(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true}); err != nil {
		t.Fatal(err)
	}
	mgmt := p.rpc("q/$management")
	get := map[string]any{"sequence-numbers": []int64{1}, "receiver-settle-mode": uint32(1)}
	got := entries(t, mgmt.manage("receive-by-sequence-number", get, 200), "messages")[0]
	token, ok := got["lock-token"].(amqp.UUID)
	if !ok {
		t.Fatalf("lock-token is %T, want a uuid", got["lock-token"])
	}
	deferred := unmarshal(t, got["message"])
	if _, ok := deferred.Annotations["x-opt-locked-until"].(time.Time); !ok || deferred.Annotations["x-opt-message-state"] != int32(1) {
		t.Errorf("annotations %v", deferred.Annotations)
	}
	mgmt.manage("update-disposition", map[string]any{
		"lock-tokens": []amqp.UUID{token}, "disposition-status": "suspended",
		"deadletter-reason": "why", "properties-to-modify": map[string]any{"new": int64(7)},
	}, 200)
	dead := p.next(p.receiver("q/$DeadLetterQueue", peekLock()))
	if dead.ApplicationProperties[keyReason] != "why" || dead.ApplicationProperties["new"] != int64(7) {
		t.Errorf("dead letter: %v", dead.ApplicationProperties)
	}
	reply := mgmt.call("com.microsoft:receive-by-sequence-number", get, nil)
	checkStatus(t, "number that is gone", reply, 404)
	if got := reply.ApplicationProperties["errorCondition"]; got != "com.microsoft:message-not-found" {
		t.Errorf("condition %v", got)
	}
}

func TestSessionOperations(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	mgmt := p.rpc("sessions/$management")
	all := map[string]any{"last-updated-time": time.UnixMilli(253402300800000), "skip": int32(0), "top": int32(10)}
	mgmt.manage("get-message-sessions", all, 404)
	p.sendInSession("a", "x")
	p.sendInSession("b", "x")
	if got := mgmt.manage("get-message-sessions", all, 200); !reflect.DeepEqual(got["sessions-ids"], []string{"a", "b"}) || got["skip"] != int32(2) {
		t.Errorf("sessions %v", got)
	}

	session := map[string]any{"session-id": "a"}
	mgmt.manage("renew-session-lock", session, 410)
	p.receiver("sessions", inSession("a", 0))
	if _, ok := mgmt.manage("renew-session-lock", session, 200)["expiration"].(time.Time); !ok {
		t.Error("expiration is no time")
	}

	state := mgmt.manage("get-session-state", session, 200)
	if v, ok := state["session-state"]; !ok || v != nil {
		t.Errorf("state %v, want the key with null", state)
	}
	mgmt.manage("set-session-state", map[string]any{"session-id": "a", "session-state": []byte("kept")}, 200)
	if got := mgmt.manage("get-session-state", session, 200)["session-state"]; string(got.([]byte)) != "kept" {
		t.Errorf("state %v, want kept", got)
	}
	mgmt.manage("set-session-state", map[string]any{"session-id": "a", "session-state": nil}, 200)
	if got := mgmt.manage("get-session-state", session, 200)["session-state"]; got != nil {
		t.Errorf("state %v, want it cleared", got)
	}
}

func TestBatchDelete(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: 1}, &amqp.Message{Value: 2})
	mgmt := p.rpc("q/$management")
	body := map[string]any{"message-count": int32(10), "enqueued-time-utc": time.Now().Add(time.Minute)}
	if got := mgmt.manage("batch-delete-messages", body, 200)["message-count"]; got != int32(2) {
		t.Errorf("deleted %v, want 2", got)
	}
	mgmt.manage("batch-delete-messages", body, 204)
}

// A request to delete no message, or those from before the beginning of time, deletes
// none.
func TestDeletingNothing(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: 1})
	mgmt := p.rpc("q/$management")
	for _, body := range []map[string]any{
		{"message-count": int32(0), "enqueued-time-utc": time.Now().Add(time.Minute)},
		{"message-count": int32(10), "enqueued-time-utc": time.Time{}},
	} {
		if reply := mgmt.call("com.microsoft:batch-delete-messages", body, nil); reply.ApplicationProperties["statusCode"] != int32(204) {
			t.Errorf("%v: %v", body, reply.ApplicationProperties)
		}
		p.send("q", &amqp.Message{Value: 1})
	}
	if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil || rt.Active != 3 {
		t.Errorf("q holds %d messages, %v, want 3", rt.Active, err)
	}
}

func TestRuleOperations(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	mgmt := p.rpc("t/Subscriptions/s/$management")
	sql := map[string]any{"rule-name": "big", "rule-description": map[string]any{
		"sql-filter": map[string]any{"expression": "size > 10"}, "sql-rule-action": map[string]any{"expression": "SET big = TRUE"},
	}}
	mgmt.manage("add-rule", sql, 200)
	mgmt.manage("add-rule", sql, 409)
	mgmt.manage("add-rule", map[string]any{"rule-name": "red", "rule-description": map[string]any{
		"correlation-filter": map[string]any{"label": "red", "properties": map[string]any{"n": int64(1)}},
	}}, 200)
	mgmt.manage("remove-rule", map[string]any{"rule-name": "$Default"}, 200)
	mgmt.manage("remove-rule", map[string]any{"rule-name": "$Default"}, 404)

	rules, err := b.broker.Rules("t", "s")
	if err != nil || len(rules) != 2 || rules[0].Filter.SQL != "size > 10" || rules[1].Filter.Correlation.Label != "red" {
		t.Fatalf("rules %+v, %v", rules, err)
	}
	list := map[string]any{"top": int32(10), "skip": int32(0)}
	if got := entries(t, mgmt.manage("enumerate-rules", list, 200), "rules"); len(got) != 2 {
		t.Errorf("%d rules, want 2", len(got))
	}
	reply := p.rpc("q/$management").call("com.microsoft:enumerate-rules", list, nil)
	checkStatus(t, "rules of a queue", reply, 400)
}

func TestRequestsAreChecked(t *testing.T) {
	b := start(t)
	p := b.login(t, sendRule)
	mgmt := p.rpc("q/$management")
	reply := mgmt.call("com.microsoft:peek-message", map[string]any{"from-sequence-number": 0, "message-count": 1}, nil)
	checkStatus(t, "peek without the right", reply, 401)
	if text := reply.ApplicationProperties["statusDescription"].(string); !strings.HasPrefix(text, "Unauthorized access. 'Listen' claim(s)") {
		t.Errorf("text %q", text)
	}

	mgmt = b.login(t, rootRule).rpc("q/$management")
	tests := []struct {
		operation string
		body      any
		status    int32
	}{
		{"com.microsoft:fly", map[string]any{"a": 1}, 501},
		{"com.microsoft:peek-message", "not a map", 400},
		{"com.microsoft:peek-message", map[string]any{"from-sequence-number": "x"}, 400},
		{"com.microsoft:peek-message", map[string]any{"from-sequence-number": 0.0, "message-count": 1.0}, 204},
		{"com.microsoft:renew-lock", map[string]any{"lock-tokens": []string{"x"}}, 400},
		{"com.microsoft:update-disposition", map[string]any{"lock-tokens": []amqp.UUID{{}}, "disposition-status": "lost"}, 400},
		{"com.microsoft:schedule-message", map[string]any{"messages": []any{map[string]any{"message": []byte("rubbish")}}}, 400},
		{"com.microsoft:renew-session-lock", map[string]any{"x": 1}, 400},
	}
	for _, tt := range tests {
		checkStatus(t, tt.operation, mgmt.call(tt.operation, tt.body, nil), tt.status)
	}
}
