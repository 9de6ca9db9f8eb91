// SPDX-License-Identifier: Apache-2.0

// Sender sends a batch of ten messages of low priority and then one of ten of high
// priority to the topic of the Priority Queue example.
//
//	go run ./examples/priorityqueue/sender -priorities Low,High -count 10
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/priorityqueue/shared"
)

func main() {
	priorities := flag.String("priorities", shared.Setting("SENDER_PRIORITIES", "Low,High"), "a batch is sent for each, in this order")
	count := flag.Int("count", 10, "messages in a batch")
	flag.Parse()
	if err := send(context.Background(), strings.Split(*priorities, ","), *count); err != nil {
		log.Fatal(err)
	}
}

func send(ctx context.Context, priorities []string, count int) error {
	c, err := client.Dial(ctx, shared.ConnectionString(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, shared.Topic, nil)
	if err != nil {
		return err
	}
	for _, priority := range priorities {
		if err := shared.SendBatch(ctx, sender, priority, count); err != nil {
			return err
		}
		fmt.Printf("sent %d messages with Priority = %s\n", count, priority)
	}
	return nil
}
