// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// "Prefetch defeats priority; set it to 1": rabbitmq-server 249, MassTransit 3046,
// php-amqplib 452. Here a high message overtakes a hundred low ones that the client
// holds and has not started.
func TestAskRabbitMQ249PrefetchDoesNotDefeatPriority(t *testing.T) {
	c := triagetest.Start(t, entities).Client()
	q := open(t, c, "orders", &client.ReceiverOptions{Prefetch: 100})
	for i := range 200 {
		q.send(client.Message{Body: fmt.Appendf(nil, "low %d", i), Priority: client.Low})
	}
	first := q.take(1)[0] // is being worked on
	if string(first.Body) != "low 0" {
		t.Fatalf("first is %q, want low 0", first.Body)
	}
	q.send(client.Message{Body: []byte("high"), Priority: client.High})
	// The client has reached its limit, so without a recall the high one would
	// come after a hundred others. The recall takes as long as a few
	// settlements do.
	found := false
	for range 50 {
		m := q.take(1)[0]
		if err := q.Complete(q.ctx, m); err != nil {
			t.Fatal(err)
		}
		if found = string(m.Body) == "high"; found {
			break
		}
	}
	if !found {
		t.Error("the high message is not among the next fifty")
	}
	if err := q.Complete(q.ctx, first); err != nil {
		t.Errorf("complete what was begun: %v", err)
	}
}

// The lowest messages that a client has may all be started. Then the broker asks for
// the lowest that is not.
func TestWhatIsStartedMakesTheNextLowestGiveWay(t *testing.T) {
	c := triagetest.Start(t, entities).Client()
	q := open(t, c, "orders", &client.ReceiverOptions{Prefetch: 3})
	for i := range 3 {
		q.send(client.Message{Body: fmt.Appendf(nil, "low %d", i), Priority: client.Low})
	}
	started := q.take(3)
	q.say("normal 0", "normal 1", "normal 2") // are held, and the client has no space
	q.send(client.Message{Body: []byte("high"), Priority: client.High})
	// What is given back is the last of those that it holds.
	other := open(t, c, "orders", &client.ReceiverOptions{MaxPriority: client.Normal})
	wantBodies(t, other.take(1), "normal 2")
	for i := 0; string(q.take(1)[0].Body) != "high"; i++ {
		if i == 2 {
			t.Fatal("the high message is not among the next three")
		}
	}
	if err := q.Complete(q.ctx, started...); err != nil {
		t.Errorf("complete what was begun: %v", err)
	}
}

func TestWhatIsGivenBackKeepsItsPlaceAndItsCount(t *testing.T) {
	c := triagetest.Start(t, entities).Client()
	q := open(t, c, "orders", &client.ReceiverOptions{Prefetch: 5})
	for i := range 5 {
		q.send(client.Message{Body: fmt.Appendf(nil, "%d", i), Priority: client.Low})
	}
	got := q.take(1) // the others are held
	if err := q.Receiver.Close(); err != nil {
		t.Fatal(err)
	}
	other := open(t, c, "orders", nil)
	rest := other.take(4)
	if bodies(rest) != "1 2 3 4" || bodies(got) != "0" {
		t.Errorf("received %q and then %q, want 0 and then 1 2 3 4", bodies(got), bodies(rest))
	}
	for _, m := range rest {
		if m.DeliveryCount != 0 {
			t.Errorf("%q counts %d failures, want none", m.Body, m.DeliveryCount)
		}
	}
}
