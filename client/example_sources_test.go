// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/triagemq/triagemq/client"
)

// Wait at several queues at once: the first that has a message is served.
func ExampleReceiverOptions_sources() {
	ctx := context.Background()
	c, err := client.Dial(ctx, connectionString, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, queue := range []string{"work", "strict"} {
		sender, err := c.OpenSender(ctx, queue, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := sender.Send(ctx, &client.Message{Body: []byte("for " + queue)}); err != nil {
			log.Fatal(err)
		}
	}

	receiver, err := c.OpenReceiver(ctx, "strict", &client.ReceiverOptions{Sources: []string{"work"}})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		messages, err := receiver.Receive(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		m := messages[0]
		fmt.Printf("%s: %s\n", m.Source, m.Body)
		if err := receiver.Complete(ctx, m); err != nil { // in the queue it came from
			log.Fatal(err)
		}
	}
	// Output:
	// strict: for strict
	// work: for work
}

// Keep a worker for what is urgent: it takes nothing below high.
func ExampleReceiverOptions_minPriority() {
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
	for _, m := range []*client.Message{{Body: []byte("report"), Priority: client.Low}, {Body: []byte("alarm"), Priority: client.Critical}} {
		if err := sender.Send(ctx, m); err != nil {
			log.Fatal(err)
		}
	}

	for _, o := range []client.ReceiverOptions{{MinPriority: client.High}, {MaxPriority: client.Normal}} {
		receiver, err := c.OpenReceiver(ctx, "work", &o)
		if err != nil {
			log.Fatal(err)
		}
		messages, err := receiver.Receive(ctx, 1)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", messages[0].Body)
		if err := receiver.Complete(ctx, messages...); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// alarm
	// report
}
