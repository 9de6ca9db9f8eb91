// SPDX-License-Identifier: Apache-2.0

package triagetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
)

func TestClientOpensNoPort(t *testing.T) {
	b := Start(t, "queues: [{name: orders}]")
	c := b.Client()
	for range 2 {
		s, err := c.OpenSender(t.Context(), "orders", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(t.Context(), &client.Message{Body: []byte("one")}); err != nil {
			t.Fatal(err)
		}
		b.Crash() // and again, in the next life
	}
	if b.network.port != nil {
		t.Errorf("port %v is open although nobody asked for one", b.network.port.Addr())
	}
}

func TestNobodyAnswersWithoutABroker(t *testing.T) {
	var n network
	if _, err := n.dial(t.Context(), "", ""); !errors.Is(err, errNoBroker) {
		t.Errorf("before the first start: %v, want %v", err, errNoBroker)
	}
	n.enter().Close()
	if _, err := n.dial(t.Context(), "", ""); !errors.Is(err, errNoBroker) {
		t.Errorf("after a stop: %v, want %v", err, errNoBroker)
	}
}

func TestDialTellsWhyItEnded(t *testing.T) {
	var n network
	defer n.enter().Close() // nobody accepts
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := n.dial(ctx, "", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %v", err, context.DeadlineExceeded)
	}
}
