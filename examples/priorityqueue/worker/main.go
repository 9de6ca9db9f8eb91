// SPDX-License-Identifier: Apache-2.0

// Worker processes the messages of one subscription of the Priority Queue example.
// Which one, and by how many instances, is in its configuration: flags, or the
// variables WORKER_SUBSCRIPTION and WORKER_INSTANCES.
//
//	go run ./examples/priorityqueue/worker -subscription high -instances 3
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/priorityqueue/shared"
)

// job is the user's own part: one method.
type job struct{ takes time.Duration }

// Process simulates work.
func (j job) Process(ctx context.Context, instance string, m *client.Received) error {
	select {
	case <-time.After(j.takes):
	case <-ctx.Done():
		return context.Cause(ctx) // the message is given back
	}
	fmt.Printf("%s  %-8s processed  %s\n", time.Now().Format("15:04:05.000"), instance, m.Body)
	return nil
}

func main() {
	instances, _ := strconv.Atoi(shared.Setting("WORKER_INSTANCES", "1"))
	var w shared.Worker
	flag.StringVar(&w.Topic, "topic", shared.Setting("WORKER_TOPIC", shared.Topic), "topic to work for")
	flag.StringVar(&w.Subscription, "subscription", shared.Setting("WORKER_SUBSCRIPTION", "high"), "subscription to read")
	flag.IntVar(&w.Instances, "instances", instances, "messages processed at a time")
	takes := flag.Duration("takes", 200*time.Millisecond, "how long the work on a message takes")
	flag.Parse()
	w.Handler = job{*takes}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work(ctx, w); err != nil {
		log.Fatal(err)
	}
}

func work(ctx context.Context, w shared.Worker) error {
	c, err := client.Dial(ctx, shared.ConnectionString(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	w.Client = c
	fmt.Printf("%d instances work for the subscription %s of %s; interrupt to stop\n", w.Instances, w.Subscription, w.Topic)
	return w.Run(ctx)
}
