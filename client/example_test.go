// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Send a few messages and receive them, the urgent one first.
func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	sender, err := c.OpenSender(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range []*client.Message{
		{Body: []byte("newsletter"), Priority: client.Low},
		{Body: []byte("invoice")},
		{Body: []byte("fire alarm"), Priority: client.Critical},
	} {
		if err := sender.Send(ctx, m); err != nil { // returns when it is durable
			log.Fatal(err)
		}
	}

	receiver, err := c.OpenReceiver(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		messages, err := receiver.Receive(ctx, 1) // waits for one
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", messages[0].Body)
		if err := receiver.Complete(ctx, messages...); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// fire alarm
	// invoice
	// newsletter
}

// Work through messages as they come, and say what became of each.
func ExampleReceiver_Messages() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"2 apples", "gibberish", "done"} {
		if err := sender.Send(ctx, &client.Message{Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}

	receiver, err := c.OpenReceiver(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	for m, err := range receiver.Messages(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch body := string(m.Body); body {
		case "gibberish":
			err = receiver.DeadLetter(ctx, m, "Unreadable", "no such format")
		case "done":
			err = receiver.Complete(ctx, m)
			stop() // ends the loop
		default:
			fmt.Println("processing", body)
			err = receiver.Complete(ctx, m)
		}
		if err != nil {
			log.Fatal(err)
		}
	}

	dead, err := c.OpenReceiver(context.WithoutCancel(ctx), client.DeadLetterQueue("orders"), nil)
	if err != nil {
		log.Fatal(err)
	}
	letters, err := dead.Receive(context.WithoutCancel(ctx), 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range letters {
		fmt.Printf("dead: %s (%s: %s)\n", m.Body, m.DeadLetterReason, m.DeadLetterDescription)
	}
	if err := dead.Complete(context.WithoutCancel(ctx), letters...); err != nil {
		log.Fatal(err)
	}
	// Output:
	// processing 2 apples
	// dead: gibberish (Unreadable: no such format)
}

// Send many messages in one transfer.
func ExampleSender_SendBatch() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, "work", nil)
	if err != nil {
		log.Fatal(err)
	}
	var batch []*client.Message
	for i := range 1000 {
		batch = append(batch, &client.Message{
			Body:       fmt.Appendf(nil, "row %d", i),
			Properties: map[string]any{"tenant": "contoso"},
		})
	}
	if err := sender.SendBatch(ctx, batch); err != nil {
		log.Fatal(err)
	}

	receiver, err := c.OpenReceiver(ctx, "work", &client.ReceiverOptions{Mode: client.ReceiveAndDelete})
	if err != nil {
		log.Fatal(err)
	}
	for n := 0; n < len(batch); {
		messages, err := receiver.Receive(ctx, 500)
		if err != nil {
			log.Fatal(err)
		}
		n += len(messages)
		if n == len(batch) {
			fmt.Printf("%d messages, the last is %q\n", n, messages[len(messages)-1].Body)
		}
	}
	// Output: 1000 messages, the last is "row 999"
}

// Ask a question and wait for the answer to it.
func ExampleClient_Request() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// Someone, somewhere, who answers.
	answering, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		receiver, err := c.OpenReceiver(ctx, "work", nil)
		if err != nil {
			log.Fatal(err)
		}
		for m, err := range receiver.Messages(answering) {
			if err != nil {
				log.Fatal(err)
			}
			shout := strings.ToUpper(string(m.Body))
			if err := c.Reply(ctx, m, &client.Message{Body: []byte(shout)}); err != nil {
				log.Fatal(err)
			}
			if err := receiver.Complete(ctx, m); err != nil {
				log.Fatal(err)
			}
		}
	}()

	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	reply, err := c.Request(asking, "work", &client.Message{Body: []byte("is anyone there?")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", reply.Body)
	stop()
	<-done
	// Output: IS ANYONE THERE?
}

// Process the messages of one customer in order, remembering how far it got.
func ExampleClient_NextSession() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, "sessions", nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, step := range []string{"order", "pay", "ship"} {
		m := &client.Message{Session: "customer 7", Body: []byte(step)}
		if err := sender.Send(ctx, m); err != nil {
			log.Fatal(err)
		}
	}

	session, err := c.NextSession(ctx, "sessions", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	for range 3 {
		messages, err := session.Receive(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		if err := session.SetState(ctx, messages[0].Body); err != nil {
			log.Fatal(err)
		}
		if err := session.Complete(ctx, messages...); err != nil {
			log.Fatal(err)
		}
	}
	state, err := session.State(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s got to %q\n", session.ID(), state)
	// Output: customer 7 got to "ship"
}

// Errors are values to compare with.
func ExampleErrNotFound() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	_, err = c.OpenSender(ctx, "no-such-queue", nil)
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output: true
}

// Take back what was scheduled for later.
func ExampleSender_Schedule() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, "orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	numbers, err := sender.Schedule(ctx, time.Now().Add(24*time.Hour), &client.Message{Body: []byte("reminder")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(numbers), "scheduled")
	if err := sender.CancelScheduled(ctx, numbers...); err != nil {
		log.Fatal(err)
	}
	// Output: 1 scheduled
}
