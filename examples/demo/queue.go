// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/client"
)

// plainQueue shows what the pattern works around: one queue that sorts by itself.
func plainQueue(ctx context.Context, b *broker) error {
	fmt.Fprintln(b.out, "\n2. The same with one plain queue: it sorts by itself, no topic, no filter, no pools")
	if err := b.run(ctx, "queue", "create", "sorted"); err != nil {
		return err
	}
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer goodbye()
	sender, err := c.OpenSender(ctx, "sorted", nil)
	if err != nil {
		return err
	}
	priorities := []client.Priority{client.Low, client.Normal, client.Low, client.High, client.Background, client.Critical, client.High, client.Level(200), client.Low}
	var sent []string
	for i, p := range priorities {
		name := fmt.Sprintf("%s#%d", p, i+1)
		if err := sender.Send(ctx, &client.Message{Body: []byte(name), Priority: p}); err != nil {
			return err
		}
		sent = append(sent, name)
	}
	fmt.Fprintf(b.out, "   sent:      %s\n", strings.Join(sent, "  "))
	receiver, err := c.OpenReceiver(ctx, "sorted", nil)
	if err != nil {
		return err
	}
	var received []string
	for range priorities {
		ms, err := receiver.Receive(ctx, 1)
		if err != nil {
			return err
		}
		received = append(received, string(ms[0].Body))
		if err := receiver.Complete(ctx, ms[0]); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "   received:  %s\n", strings.Join(received, "  "))
	want := []string{"200#8", "critical#6", "high#4", "high#7", "normal#2", "low#1", "low#3", "low#9", "background#5"}
	if !slices.Equal(received, want) {
		return fmt.Errorf("received %v, want %v", received, want)
	}
	fmt.Fprintln(b.out, "   The highest first, and in one priority the oldest first.")
	return nil
}
