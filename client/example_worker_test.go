// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/triagemq/triagemq/client"
)

// example sends messages to a queue and returns a receiver of it.
func example(ctx context.Context, c *client.Client, queue string, ms ...*client.Message) *client.Receiver {
	sender, err := c.OpenSender(ctx, queue, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := sender.SendBatch(ctx, ms); err != nil {
		log.Fatal(err)
	}
	receiver, err := c.OpenReceiver(ctx, queue, nil)
	if err != nil {
		log.Fatal(err)
	}
	return receiver
}

// A service may start before its broker: New does not connect.
func ExampleNew() {
	c, err := client.New(connectionString, &client.Options{RetryTimeout: time.Hour})
	if err != nil {
		log.Fatal(err) // the address cannot be read
	}
	defer c.Close()

	ctx := context.Background()
	sender, err := c.OpenSender(ctx, "orders", &client.SenderOptions{Priority: client.Low}) // waits for the broker
	if err != nil {
		log.Fatal(err)
	}
	if err := sender.Send(ctx, &client.Message{Body: []byte("newsletter")}); err != nil {
		log.Fatal(err)
	}
	receiver, err := c.OpenReceiver(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	messages, err := receiver.Receive(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s is %s\n", messages[0].Body, messages[0].Priority)
	if err := receiver.Complete(ctx, messages...); err != nil {
		log.Fatal(err)
	}
	// Output: newsletter is low
}

// Ask whether there is something to do, without waiting for it.
func ExampleReceiver_Poll() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	receiver := example(ctx, c, "work", &client.Message{Body: []byte("now")})
	for range 2 {
		messages, err := receiver.Poll(ctx, 10)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(messages))
		if err := receiver.Complete(ctx, messages...); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 1
	// 0
}

// Hand a message back with how far the work got. It counts as no failure.
func ExampleReceiver_Release() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	receiver := example(ctx, c, "work", &client.Message{Body: []byte("long work")})
	for done := int64(0); done < 90; done += 30 {
		messages, err := receiver.Receive(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		m := messages[0]
		fmt.Printf("%s: %v %% done, %d failures\n", m.Body, m.Properties["done"], m.DeliveryCount)
		if err := receiver.Release(ctx, m, map[string]any{"done": done + 30}); err != nil {
			log.Fatal(err)
		}
	}
	messages, err := receiver.Receive(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	if err := receiver.Complete(ctx, messages...); err != nil {
		log.Fatal(err)
	}
	// Output:
	// long work: <nil> % done, 0 failures
	// long work: 30 % done, 0 failures
	// long work: 60 % done, 0 failures
}

// Tell refusals apart by what the broker said.
func ExampleError() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = c.OpenSender(ctx, "no-such-queue", nil)
	var said *client.Error
	if errors.As(err, &said) {
		fmt.Println(said.Code, said.Entity, errors.Is(err, client.ErrNotFound))
	}
	// Output: amqp:not-found no-such-queue true
}

// Carry a trace with each message, and measure what becomes of it.
func ExampleHooks() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, &client.Options{Hooks: client.Hooks{
		Sending: func(ctx context.Context, entity string, m *client.Message) context.Context {
			m.Properties["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			return ctx // with the span that Sent ends
		},
		Received: func(ctx context.Context, m *client.Received) {
			fmt.Println("received", m.Properties["traceparent"])
		},
		Settled: func(ctx context.Context, m *client.Received, outcome string, took time.Duration, err error) {
			fmt.Println(outcome, took < time.Minute, err)
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	receiver := example(ctx, c, "work", &client.Message{Body: []byte("traced")})
	messages, err := receiver.Receive(ctx, 1)
	if err != nil {
		log.Fatal(err)
	}
	if err := receiver.Complete(ctx, messages...); err != nil {
		log.Fatal(err)
	}
	// Output:
	// received 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
	// completed true <nil>
}
