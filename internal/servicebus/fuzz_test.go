// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"log/slog"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
)

// FuzzRequest lets every operation read any body: it may refuse, not panic.
func FuzzRequest(f *testing.F) {
	seed := func(body codec.Value) {
		f.Add((&message.Draft{Value: &body}).Encode(nil))
	}
	seed(dummy)
	seed(result("from-sequence-number", codec.Long(0), "message-count", codec.Int(1)))
	seed(result("lock-tokens", codec.Raw(codec.AppendUUIDArray(nil, [][16]byte{{1}})), "disposition-status", codec.String("completed")))
	seed(result("sequence-numbers", codec.Raw(codec.AppendLongArray(nil, []int64{1}))))
	seed(result("session-id", codec.String("a"), "session-state", codec.Binary([]byte("x"))))
	seed(result("last-updated-time", codec.Timestamp(time.UnixMilli(everySession)), "skip", codec.Int(0), "top", codec.Int(1)))
	seed(result("messages", codec.List(result("message", codec.Binary((&message.Draft{Body: []byte("x")}).Encode(nil))))))
	seed(result("rule-name", codec.String("r"), "rule-description", result("correlation-filter", result("properties", result("a", codec.Double(1))))))

	b, err := broker.Open(nil, slog.New(slog.DiscardHandler)) // has no entities, which is all that can be said
	if err != nil {
		f.Fatal(err)
	}
	svc := New(b, budget.Unlimited(), slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := message.Parse(raw)
		if err != nil {
			return
		}
		body, _ := m.Value()
		c := &conn{svc: svc, host: "h", log: svc.log, member: svc.memory.Enter(), unsynced: unsynced{account: svc.memory.Unsynced()}}
		for name, op := range operations {
			for _, entity := range []string{"q", "t/Subscriptions/s", ""} {
				k := &call{ctx: t.Context(), request: &request{from: &requests{c: c}, message: m}, c: c, body: body, entity: entity, op: op}
				k.run()
				if k.reply.status == statusInternal {
					t.Errorf("%s of %q: an error nobody planned for", name, entity)
				}
			}
		}
	})
}

// FuzzAttach reads filters and properties that a peer made up.
func FuzzAttach(f *testing.F) {
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(sessionFilter), codec.String("x"))))
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(propTimeout), codec.Uint(5))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		source := &frame.Source{Filter: raw}
		w := sessionWishOf(source)
		if granted := w.granted(source, "id").Filter; granted != nil {
			if again := sessionWishOf(&frame.Source{Filter: granted}); again.id == nil || *again.id != "id" {
				t.Fatalf("granted filter % x reads as %+v", granted, again)
			}
		}
		if d := acceptTimeoutOf(raw); d <= 0 || d > maxAcceptTimeout {
			t.Fatalf("timeout %v", d)
		}
		deadLetterOf(&frame.Error{Condition: condDeadLetter, Info: raw})
	})
}

// A peer must not gain a right by the way it writes an address: what the broker
// is asked for is what was checked.
func FuzzAddress(f *testing.F) {
	f.Add("q")
	f.Add("amqps://h/q/%2e%2e/r")
	f.Add("/Q/$Management")
	f.Add("t/SUBSCRIPTIONS/s/$Transfer/$DeadLetterQueue")
	f.Fuzz(func(t *testing.T, addr string) {
		path := pathOf(addr)
		if again := pathOf(path); again != path {
			t.Fatalf("%q is checked as %q and resolved as %q", addr, path, again)
		}
	})
}
