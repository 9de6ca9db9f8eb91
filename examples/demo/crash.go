// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/client"
)

// crash kills the broker while messages wait and one is locked, and checks that
// all are there after the restart.
func crash(ctx context.Context, b *broker) error {
	fmt.Fprintln(b.out, "\n3. kill -9: nothing that was acknowledged is lost, and the order stays")
	if err := b.run(ctx, "queue", "create", "durable"); err != nil {
		return err
	}
	acknowledged, err := fill(ctx, b)
	if err != nil {
		return err
	}
	b.Kill()
	fmt.Fprintf(b.out, "   %d messages were acknowledged, one of them is with a worker; then the broker was killed (SIGKILL).\n", len(acknowledged))

	begin := time.Now()
	if err := b.Start(ctx); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "   It is back after %d ms, on the same directory.\n", time.Since(begin).Milliseconds())
	return check(ctx, b, acknowledged)
}

// crashPriorities are used round robin.
var crashPriorities = []client.Priority{client.Low, client.High, client.Normal}

// fill sends messages, receives one without settling it, and returns the
// acknowledged messages with their positions in the order of delivery.
func fill(ctx context.Context, b *broker) (map[string]int, error) {
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer goodbye()
	sender, err := c.OpenSender(ctx, "durable", nil)
	if err != nil {
		return nil, err
	}
	const each = 100
	places := map[client.Priority]int{client.High: 0, client.Normal: each, client.Low: 2 * each}
	acknowledged := map[string]int{}
	for i := range each * len(crashPriorities) {
		p := crashPriorities[i%len(crashPriorities)]
		name := fmt.Sprintf("%s %d", p, i)
		if err := sender.Send(ctx, &client.Message{Body: []byte(name), Priority: p}); err != nil {
			return nil, err
		}
		acknowledged[name] = places[p] + i/len(crashPriorities)
	}
	receiver, err := c.OpenReceiver(ctx, "durable", nil)
	if err != nil {
		return nil, err
	}
	_, err = receiver.Receive(ctx, 1) // its lock ends with the broker
	return acknowledged, err
}

// check receives everything and compares it with what was acknowledged.
func check(ctx context.Context, b *broker, acknowledged map[string]int) error {
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer goodbye()
	receiver, err := c.OpenReceiver(ctx, "durable", nil)
	if err != nil {
		return err
	}
	for place := range len(acknowledged) {
		ms, err := receiver.Receive(ctx, 1)
		if err != nil {
			return fmt.Errorf("after %d messages: %w", place, err)
		}
		if want, ok := acknowledged[string(ms[0].Body)]; !ok || want != place {
			return fmt.Errorf("%q arrived at position %d, want %d", ms[0].Body, place, want)
		}
		if err := receiver.Complete(ctx, ms[0]); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "   All %d are there, high before normal before low, each in the order in which it was sent.\n", len(acknowledged))
	return nil
}
