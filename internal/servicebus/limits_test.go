// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// A message beyond a limit is rejected, with the limit; the link stays.
func TestMessagesBeyondALimitAreRejected(t *testing.T) {
	b := start(t)
	p := b.login(t, sendRule)
	s := p.sender("q")
	long := strings.Repeat("x", 129)
	batch := amqp.NewMessage(nil)
	batch.Format = uint32(message.FormatBatch)
	batch.Data = make([][]byte, limits.Batch+1)
	for name, m := range map[string]*amqp.Message{
		"message id":    {Properties: &amqp.MessageProperties{MessageID: long}},
		"session id":    {Properties: &amqp.MessageProperties{GroupID: &long}},
		"partition key": {Annotations: amqp.Annotations{"x-opt-partition-key": long}},
		"property":      {ApplicationProperties: map[string]any{"p": strings.Repeat("x", 33<<10)}},
		"batch":         batch,
	} {
		if name != "batch" {
			m.Data = [][]byte{nil}
		}
		e := wantCondition(t, name, s.Send(p.ctx(), m, nil), names.ArgumentError)
		if !strings.Contains(e.Description, "at most") {
			t.Errorf("%s: %q, want the limit", name, e.Description)
		}
	}
	if err := s.Send(p.ctx(), amqp.NewMessage([]byte("fine")), nil); err != nil {
		t.Errorf("after all that: %v, want nil", err)
	}
}

// Numbers 1, 3 and 13: so are requests.
func TestRequestsBeyondALimitAreRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "x"})
	p.receiver("sessions", inSession("s", 0))
	m := p.next(p.receiver("q", peekLock()))
	token := m.DeliveryAnnotations["x-opt-lock-token"].(amqp.UUID)
	tokens := func(n int) []amqp.UUID {
		ts := make([]amqp.UUID, n)
		for i := range ts {
			ts[i] = token
		}
		return ts
	}
	properties := func(n, size int) map[string]any {
		m := map[string]any{}
		for i := range n {
			m[fmt.Sprint("p", i)] = strings.Repeat("x", size)
		}
		return m
	}
	dispose := func(n int, changes map[string]any) map[string]any {
		return map[string]any{"lock-tokens": tokens(n), "disposition-status": "abandoned", "properties-to-modify": changes}
	}
	long := strings.Repeat("x", 129)
	for _, tt := range []struct {
		name, node, operation string
		body                  map[string]any
	}{
		{"a property", "q", "update-disposition", dispose(1, properties(1, 100<<10))},
		{"all properties", "q", "update-disposition", dispose(1, properties(5, 20<<10))},
		{"many properties", "q", "update-disposition", dispose(1, properties(20_000, 1))},
		{"times messages", "q", "update-disposition", dispose(300, properties(2, 30<<10))},
		{"tokens", "q", "renew-lock", map[string]any{"lock-tokens": tokens(limits.Tokens + 1)}},
		{"numbers", "q", "cancel-scheduled-message", map[string]any{"sequence-numbers": make([]int64, limits.Tokens+1)}},
		{"session id", "sessions", "set-session-state", map[string]any{"session-id": long, "session-state": []byte("x")}},
		{"session state", "sessions", "set-session-state", map[string]any{"session-id": "s", "session-state": make([]byte, 257<<10)}},
		{"label", "t/Subscriptions/s", "add-rule", map[string]any{"rule-name": "r", "rule-description": map[string]any{
			"correlation-filter": map[string]any{"label": strings.Repeat("x", 1025)}}}},
		{"properties of a filter", "t/Subscriptions/s", "add-rule", map[string]any{"rule-name": "r", "rule-description": map[string]any{
			"correlation-filter": map[string]any{"properties": properties(65, 1)}}}},
		{"sql", "t/Subscriptions/s", "add-rule", map[string]any{"rule-name": "r", "rule-description": map[string]any{
			"sql-filter": map[string]any{"expression": "x = '" + strings.Repeat("y", 1020) + "'"}}}},
	} {
		reply := p.rpc(tt.node+"/$management").call("com.microsoft:"+tt.operation, tt.body, nil)
		checkStatus(t, tt.name, reply, 400)
		if got := reply.ApplicationProperties["errorCondition"]; got != names.ArgumentError {
			t.Errorf("%s: condition %v, want %s", tt.name, got, names.ArgumentError)
		}
		text, _ := reply.ApplicationProperties["statusDescription"].(string)
		if !strings.Contains(text, "at most") || len(text) > 1000 {
			t.Errorf("%s: %.200q, want the limit", tt.name, text)
		}
	}
	p.rpc("q/$management").manage("renew-lock", map[string]any{"lock-tokens": tokens(1)}, 200)

	// An error does not repeat what was sent, whatever its size.
	reply := p.rpc("t/Subscriptions/s/$management").call("com.microsoft:remove-rule", map[string]any{"rule-name": strings.Repeat("x", 200<<10)}, nil)
	if text, _ := reply.ApplicationProperties["statusDescription"].(string); len(text) > 2000 {
		t.Errorf("an error of %d bytes", len(text))
	}
	reply = p.rpc("q/$management").call("com.microsoft:"+strings.Repeat("x", 60<<10), map[string]any{}, nil)
	if text, _ := reply.ApplicationProperties["statusDescription"].(string); len(text) > 2000 {
		t.Errorf("an error of %d bytes", len(text))
	}
}
