// SPDX-License-Identifier: Apache-2.0

package management

import (
	"log/slog"
	"net"
	"testing"

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

// thousandSessions is a connection whose receivers hold a thousand sessions.
type thousandSessions struct{ everySessionHeld }

func (thousandSessions) HeldSessions(string) []queue.SessionLock {
	return make([]queue.SessionLock, 1000)
}

// A request that names messages by their tokens keeps the locks of all sessions that its
// connection holds, and a thousand requests may wait. What they keep is charged.
func TestSessionsOfRequestsAreCharged(t *testing.T) {
	b, err := broker.Open(nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	svc := azure.New(b, budget.Unlimited(), slog.New(slog.DiscardHandler), personality{b})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c, _, finish := svc.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	defer finish()
	body := wire.Result("lock-tokens", codec.Raw(codec.AppendUUIDArray(nil, [][16]byte{{1}})))
	d := message.Draft{Value: &body}
	op, _ := Operation(names.RenewLock, b, thousandSessions{})
	// The connection has not logged in, and may hold 64 KiB.
	for i, want := range []int32{condition.StatusNotFound, condition.StatusForbidden} {
		if status := c.Try(t.Context(), op, "q", d.Message()); status != want {
			t.Errorf("request %d with a thousand sessions: status %d, want %d", i, status, want)
		}
	}
}

// What a settlement names stays with the shard until it is done, also when its sender does not wait
// any more. It is charged apart from the request.
func TestSettlementsOfRequestsAreCharged(t *testing.T) {
	b, err := broker.Open(nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	svc := azure.New(b, budget.Unlimited(), slog.New(slog.DiscardHandler), personality{b})
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c, _, finish := svc.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	defer finish()
	const before = 1 // an account with nothing in it takes anything
	c.Memory().Charge(before)
	defer c.Memory().Release(before)
	op, _ := Operation(names.UpdateDisposition, b, everySessionHeld{})
	var changes []codec.Value
	for i := range 1000 {
		changes = append(changes, codec.String(string(rune('a'+i))), codec.Value{})
	}
	// The connection has not logged in, and may hold 64 KiB.
	for _, x := range []struct {
		tokens  int
		changes []codec.Value
		want    int32
	}{{1, nil, condition.StatusNotFound}, {2000, nil, condition.StatusForbidden}, {1, changes, condition.StatusForbidden}} {
		body := codec.Map(codec.String("lock-tokens"), codec.Raw(codec.AppendUUIDArray(nil, make([][16]byte, x.tokens))),
			codec.String("disposition-status"), codec.String("abandoned"), codec.String("properties-to-modify"), codec.Map(x.changes...))
		d := message.Draft{Value: &body}
		if status := c.Try(t.Context(), op, "q", d.Message()); status != x.want {
			t.Errorf("%d tokens and %d changes: status %d, want %d", x.tokens, len(x.changes)/2, status, x.want)
		}
		if used := c.Memory().Used(); used != before {
			t.Errorf("%d bytes are charged afterwards, %d before", used, before)
		}
	}
}
