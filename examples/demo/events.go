// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/client"
)

const (
	sensors  = 8  // each is a partition key
	readings = 50 // of each sensor
)

// events publishes readings of sensors to an event hub, kills the broker, and reads them
// twice: each sensor's readings are in order, and reading removes nothing.
func events(ctx context.Context, b *broker) error {
	fmt.Fprintln(b.out, "\n4. An event hub: readings of sensors in four partitions, kept for a day, read by anyone")
	if err := b.run(ctx, "hub", "create", "readings", "--partition-count", "4"); err != nil {
		return err
	}
	if err := publish(ctx, b); err != nil {
		return err
	}
	b.Kill()
	if err := b.Start(ctx); err != nil {
		return err
	}
	for _, when := range []string{"after a kill -9", "once more"} {
		sizes, err := replay(ctx, b)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out, "   read %s: %s events in the four partitions, those of each sensor in order.\n", when, strings.Join(sizes, " + "))
	}
	return nil
}

// publish sends the readings, those of one sensor with the same key.
func publish(ctx context.Context, b *broker) error {
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer goodbye()
	sender, err := c.OpenSender(ctx, "readings", nil)
	if err != nil {
		return err
	}
	for i := range readings {
		for s := range sensors {
			m := &client.Message{Body: fmt.Appendf(nil, "%d", i), PartitionKey: fmt.Sprintf("sensor-%d", s)}
			if err := sender.Send(ctx, m); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(b.out, "   %d sensors have published %d readings each; then the broker was killed and started again.\n", sensors, readings)
	return nil
}

// replay reads the hub from its oldest event on, all partitions at once, and returns how
// many events are in each.
func replay(ctx context.Context, b *broker) ([]string, error) {
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer goodbye()
	partitions, err := c.Partitions(ctx, "readings")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var left atomic.Int64
	left.Store(sensors * readings)
	sizes := make([]string, len(partitions))
	var wg sync.WaitGroup
	for i, p := range partitions {
		wg.Go(func() {
			n, err := read(ctx, c, p, func() {
				if left.Add(-1) == 0 {
					stop(errAllRead)
				}
			})
			sizes[i] = fmt.Sprint(n)
			if err != nil {
				stop(err) // the first one counts
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errAllRead) {
		return nil, err
	}
	return sizes, nil
}

var errAllRead = errors.New("all events are read")

// read reads a partition until ctx ends, and checks the order of each sensor's readings.
func read(ctx context.Context, c *client.Client, partition string, each func()) (n int, err error) {
	r, err := c.OpenEventReader(ctx, "readings", partition, nil)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	next := map[string]int{} // reading of each sensor
	for {
		events, err := r.Receive(ctx, 100)
		if err != nil {
			return n, err
		}
		for _, e := range events {
			if want := fmt.Sprint(next[e.PartitionKey]); string(e.Body) != want {
				return n, fmt.Errorf("%s: reading %s comes where %s is due", e.PartitionKey, e.Body, want)
			}
			next[e.PartitionKey]++
			n++
			each()
		}
	}
}
