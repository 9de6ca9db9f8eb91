// SPDX-License-Identifier: Apache-2.0

// Command idle attaches a receiver to each of many queues, q0 to q999, and waits
// for messages that never come, so that one can see what that costs the broker.
//
//	go run ./bench/idle -url amqp://localhost:5672 -queues 1000 -duration 10s
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/Azure/go-amqp"
)

func main() {
	url := flag.String("url", "amqp://localhost:5672", "`address` of the broker")
	queues := flag.Int("queues", 1000, "receivers, one for each queue")
	duration := flag.Duration("duration", 10*time.Second, "how long to wait")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := wait(ctx, *url, *queues, *duration); err != nil {
		fmt.Fprintln(os.Stderr, "idle:", err)
		os.Exit(1)
	}
}

// wait prints that all are attached and continues to wait.
func wait(ctx context.Context, url string, queues int, d time.Duration) error {
	const links = 100 // of one connection
	for from := 0; from < queues; from += links {
		conn, err := amqp.Dial(ctx, url, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
		if err != nil {
			return err
		}
		defer conn.Close()
		session, err := conn.NewSession(ctx, nil)
		if err != nil {
			return err
		}
		for i := from; i < min(from+links, queues); i++ {
			if _, err := session.NewReceiver(ctx, fmt.Sprintf("q%d", i), &amqp.ReceiverOptions{Credit: 10}); err != nil {
				return err
			}
		}
	}
	fmt.Println("waiting")
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return nil
}
