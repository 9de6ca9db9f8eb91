// SPDX-License-Identifier: Apache-2.0

package management

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// FuzzRequest lets every operation read any body: it may refuse, not panic.
func FuzzRequest(f *testing.F) {
	seed := func(body codec.Value) {
		f.Add((&message.Draft{Value: &body}).Encode(nil))
	}
	seed(wire.Done)
	seed(wire.Result("from-sequence-number", codec.Long(0), "message-count", codec.Int(1)))
	seed(wire.Result("lock-tokens", codec.Raw(codec.AppendUUIDArray(nil, [][16]byte{{1}})), "disposition-status", codec.String("completed")))
	seed(wire.Result("sequence-numbers", codec.Raw(codec.AppendLongArray(nil, []int64{1}))))
	seed(wire.Result("session-id", codec.String("a"), "session-state", codec.Binary([]byte("x"))))
	seed(wire.Result("last-updated-time", codec.Timestamp(time.UnixMilli(everySession)), "skip", codec.Int(0), "top", codec.Int(1)))
	seed(wire.Result("messages", codec.List(wire.Result("message", codec.Binary((&message.Draft{Body: []byte("x")}).Encode(nil))))))
	seed(wire.Result("rule-name", codec.String("r"), "rule-description", wire.Result("correlation-filter", wire.Result("properties", wire.Result("a", codec.Double(1))))))

	b, err := broker.Open(nil, nil, slog.New(slog.DiscardHandler)) // has no entities, which is all that can be said
	if err != nil {
		f.Fatal(err)
	}
	p := personality{b}
	svc := azure.New(b, budget.Unlimited(), slog.New(slog.DiscardHandler), p)
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := message.Parse(raw)
		if err != nil {
			return
		}
		ours, theirs := net.Pipe()
		defer ours.Close()
		defer theirs.Close()
		c, _, finish := svc.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
		defer finish()
		for name := range operations {
			for _, entity := range []string{"q", "t/Subscriptions/s", ""} {
				op, _ := Operation(name, b, everySessionHeld{})
				if status := c.Try(t.Context(), op, entity, m); status == condition.StatusInternal {
					t.Errorf("%s of %q: an error nobody planned for", name, entity)
				}
			}
		}
	})
}

// personality has no links, and the errors of queues.
type personality struct{ *broker.Broker }

func (p personality) Find(string) (uint64, error)  { return 0, broker.ErrNotFound }
func (p personality) ServesNamespace() bool        { return false }
func (p personality) Open(*azure.Conn) azure.Links { return nil }
func (p personality) Conditions() []condition.Condition {
	var cs []condition.Condition
	for _, err := range []error{broker.ErrSessionRequired, broker.ErrLockLost, broker.ErrSessionLockLost, broker.ErrMessageNotFound} {
		cs = append(cs, condition.Condition{Err: err, Name: names.MessageNotFound, Status: condition.StatusNotFound})
	}
	return append(cs, condition.Condition{Name: names.SessionNotFound, Status: condition.StatusNotFound})
}

// everySessionHeld is a connection whose receivers hold every session.
type everySessionHeld struct{}

func (everySessionHeld) HeldSession(string, string, string) (queue.SessionLock, bool) {
	return queue.SessionLock{}, true
}
func (everySessionHeld) HeldSessions(string) []queue.SessionLock { return nil }
