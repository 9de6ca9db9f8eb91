// SPDX-License-Identifier: Apache-2.0

package triagetest_test

import (
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

func TestBrokerKeepsMessagesThroughACrash(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	c := b.Client()
	s, err := c.OpenSender(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), &client.Message{Body: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	before := b.Port()
	b.Crash()
	if got := b.Port(); got != before {
		t.Errorf("after the crash the port is %s, want %s", got, before)
	}
	r, err := c.OpenReceiver(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := r.Receive(t.Context(), 1)
	if err != nil || string(ms[0].Body) != "kept" {
		t.Fatalf("after the crash: %v, %v, want the message", ms, err)
	}
	if err := r.Complete(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
}

func TestTwoBrokersShareNothing(t *testing.T) {
	a := triagetest.Start(t, "queues: [{name: orders}]")
	b := triagetest.Start(t, "queues: [{name: orders}]")
	s, err := a.Client().OpenSender(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), &client.Message{}); err != nil {
		t.Fatal(err)
	}
	r, err := b.Client().OpenReceiver(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if ms, err := r.Peek(t.Context(), 0, 1); err != nil || len(ms) != 0 {
		t.Errorf("the other broker has %d messages (%v), want none", len(ms), err)
	}
}
