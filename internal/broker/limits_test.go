// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A4: names that every record of a message repeats are limited where they come in,
// so that no group of records becomes larger than the log takes.
func TestLongNamesAreRefusedAtTheDoor(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "sessions", RequiresSession: true})
	r.queue(entity.Queue{Name: "unique", RequiresDuplicateDetection: true})
	r.ranked("plain", `{"fairKey": "tenant"}`)
	r.topic(entity.Topic{Name: "topic"}, entity.Subscription{Name: "s"})
	session := func(id string) *message.Message { d := message.Draft{SessionID: id}; return d.Message() }
	numbered := func(id string) *message.Message { d := message.Draft{MessageID: codec.String(id)}; return d.Message() }
	fits, long := strings.Repeat("ü", 128), strings.Repeat("ü", 129)
	for _, tt := range []struct {
		addr string
		make func(string) *message.Message
	}{
		{"sessions", session},
		{"plain", session},
		{"topic", session},
		{"unique", numbered},
		{"plain", func(key string) *message.Message { return msg("x", "tenant", key) }},
	} {
		if err := r.trySend(tt.addr, tt.make(fits)); err != nil {
			t.Errorf("%s: a name of 128 characters: %v", tt.addr, err)
		}
		if err := r.trySend(tt.addr, tt.make(fits), tt.make(long)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: a name of 129 characters: %v, want %v", tt.addr, err, ErrInvalid)
		}
	}
	if err := r.SetSessionState(t.Context(), "sessions", queue.SessionLock{ID: long}, []byte("x")); !errors.Is(err, ErrInvalid) {
		t.Errorf("state of a session with a long name: %v, want %v", err, ErrInvalid)
	}
}

// A4: a rule that makes a name too long is an incident of its subscription; it does
// not turn the publisher away.
func TestRuleThatMakesALongNameLeavesADeadLetter(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "good"}, entity.Subscription{Name: "bad"})
	if err := r.DeleteRule(t.Context(), "t", "bad", "$Default"); err != nil {
		t.Fatal(err)
	}
	rule := sql("long", "1=1")
	rule.Action = entity.Action{SQL: "SET sys.SessionId = '" + strings.Repeat("x", 200) + "'"}
	if _, err := r.CreateRule(t.Context(), "t", "bad", rule); err != nil {
		t.Fatal(err)
	}
	r.send("t", msg("hello"))
	for addr, want := range map[string]int64{"t/Subscriptions/good": 1, "t/Subscriptions/bad": 0} {
		rt, err := r.Runtime(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		if rt.Active != want || rt.Dead != 1-want {
			t.Errorf("%s: %d active, %d dead, want %d and %d", addr, rt.Active, rt.Dead, want, 1-want)
		}
	}
}
