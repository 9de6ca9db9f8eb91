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
