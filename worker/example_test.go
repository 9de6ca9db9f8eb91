// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// connect returns a client of the broker of the Examples. It connects when it is first
// used.
func connect() *client.Client {
	c, err := client.New(connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// put sends messages to a queue.
func put(ctx context.Context, c *client.Client, queue string, ms ...*client.Message) {
	sender, err := c.OpenSender(ctx, queue, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range ms {
		if err := sender.Send(ctx, m); err != nil {
			log.Fatal(err)
		}
	}
}

// A handler for each message: nil completes it.
func ExamplePool() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example", body("report", client.Low), body("alarm", client.High))

	pool := worker.Pool{
		Client: c,
		Source: "example",
		Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
			fmt.Printf("%s\n", t.Body)
			if string(t.Body) == "report" {
				stop()
			}
			return nil
		}),
	}
	fmt.Println(pool.Run(ctx))
	// Output:
	// alarm
	// report
	// <nil>
}

// A task of many steps makes way for a more urgent message, and goes on afterwards.
func ExampleTask_Yield() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example", body("slow", client.Low))

	urgent := make(chan struct{})
	pool := worker.Pool{
		Client:  c,
		Source:  "example",
		Preempt: &worker.Preemption{},
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			fmt.Printf("%s starts\n", t.Body)
			if string(t.Body) == "urgent" {
				close(urgent)
				return nil
			}
			go put(ctx, c, "example", body("urgent", client.High))
			for working := true; working; {
				if err := t.Yield(ctx); err != nil {
					return err
				}
				select {
				case <-urgent: // the last step
					working = false
				case <-time.After(time.Millisecond):
				}
			}
			fmt.Printf("%s ends\n", t.Body)
			stop()
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("preempted:", pool.Status().Preempted)
	// Output:
	// slow starts
	// urgent starts
	// slow ends
	// preempted: 1
}

// A decoded body instead of bytes. What cannot be decoded is a dead letter.
func ExampleJSON() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example", body("{", client.High), body(`{"Customer": "Ada", "Total": 42}`, ""))

	type order struct {
		Customer string
		Total    int
	}
	pool := worker.Pool{
		Client: c,
		Source: "example",
		Handler: worker.JSON(func(_ context.Context, _ *worker.Task, o order) error {
			fmt.Println(o.Customer, o.Total)
			stop()
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("dead letters:", pool.Status().DeadLettered)
	// Output:
	// Ada 42
	// dead letters: 1
}

// The error decides when, and whether, a message is tried again.
func ExampleRetryAfter() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example", body("busy", client.High), body("broken", client.Low))

	pool := worker.Pool{
		Client: c,
		Source: "example",
		Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
			switch {
			case string(t.Body) == "broken":
				return worker.DeadLetter("Broken", errors.New("it has no customer"))
			case t.DeliveryCount == 0:
				return worker.RetryAfter(100*time.Millisecond, errors.New("the printer is busy"))
			}
			fmt.Printf("%s, after %d failure\n", t.Body, t.DeliveryCount)
			stop()
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("dead letters:", pool.Status().DeadLettered)
	// Output:
	// busy, after 1 failure
	// dead letters: 1
}

// Save a checkpoint, so that the next run of the message goes on from there.
func ExampleTask_Save() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example", body("long", ""))

	pool := worker.Pool{
		Client: c,
		Source: "example",
		Retry:  worker.Constant(time.Millisecond),
		Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
			if t.State() == nil {
				if err := t.Save(ctx, []byte("page 3")); err != nil {
					return err
				}
				return errors.New("the paper is used up")
			}
			fmt.Printf("%s from %s\n", t.Body, t.State())
			stop()
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// long from page 3
}

// One pool for several queues: the first that has a message is served.
func ExamplePool_sources() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()
	put(ctx, c, "example-low", body("low", ""))
	put(ctx, c, "example", body("high", ""))

	pool := worker.Pool{
		Client:  c,
		Sources: []worker.Source{{Entity: "example"}, {Entity: "example-low"}},
		Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
			fmt.Printf("%s from %s\n", t.Body, t.Source)
			if string(t.Body) == "low" {
				stop()
			}
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// high from example
	// low from example-low
}

// Answer a request: the reply goes to the client that asked.
func ExampleReply() {
	ctx, stop := context.WithCancel(context.Background())
	c := connect()
	defer c.Close()

	pool := worker.Pool{
		Client: c,
		Source: "example",
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			return worker.Reply(ctx, t, body("pong", ""))
		}),
	}
	done := make(chan error)
	go func() { done <- pool.Run(ctx) }()

	reply, err := c.Request(ctx, "example", body("ping", client.High))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", reply.Body)
	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// pong
}
