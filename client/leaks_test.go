// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// Shutdown with a context that has ended closes all the same, only less politely.
func TestShutdownWithAnEndedContextCloses(t *testing.T) {
	b := triagetest.Start(t, entities)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		var conn *closing
		c, err := client.Dial(t.Context(), b.ConnectionString(), &client.Options{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				raw, err := new(net.Dialer).DialContext(ctx, network, address)
				conn = &closing{Conn: raw}
				return conn, err
			},
		})
		must(t, err)
		_ = c.Shutdown(ended) // it may say that it had no time
		if !conn.closed.Load() {
			_ = c.Close()
			t.Fatal("the connection is still open")
		}
	}
}

type closing struct {
	net.Conn
	closed atomic.Bool
}

func (c *closing) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// A gateway that answers for a broker which is away is asked again and again.
func TestRefusedWebSocketLeavesNoConnection(t *testing.T) {
	gone := make(chan struct{}, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			gone <- struct{}{}
		}
	}
	s.Start()
	defer s.Close()
	if _, err := client.Dial(deadline(t), "ws://"+s.Listener.Addr().String(), nil); err == nil {
		t.Fatal("connected to a gateway without a broker")
	}
	select {
	case <-gone:
	case <-deadline(t).Done():
		t.Error("the connection is still open")
	}
}
