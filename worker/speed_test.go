// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

// BenchmarkPool measures messages through a pool of 16 slots on a broker in memory.
func BenchmarkPool(b *testing.B) {
	broker := triagetest.Start(b, entities)
	c := broker.Client()
	sender, err := c.OpenSender(b.Context(), "tasks", nil)
	if err != nil {
		b.Fatal(err)
	}
	var sends []*client.Message
	for range b.N {
		sends = append(sends, &client.Message{Body: []byte("x")})
	}
	if err := sender.SendBatch(b.Context(), sends); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var n atomic.Int64
	p := &worker.Pool{
		Client: c, Source: "tasks", Slots: 16, Log: slog.New(slog.DiscardHandler),
		Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error {
			if n.Add(1) == int64(b.N) {
				stop()
			}
			return nil
		}),
	}
	b.ResetTimer()
	if err := p.Run(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart measures how long a message takes from Send to its handler, in a pool
// whose 4 slots are free.
func BenchmarkStart(b *testing.B) {
	broker := triagetest.Start(b, entities)
	c := broker.Client()
	sender, err := c.OpenSender(b.Context(), "tasks", nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	started := make(chan struct{})
	p := &worker.Pool{
		Client: c, Source: "tasks", Slots: 4, Log: slog.New(slog.DiscardHandler),
		Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { started <- struct{}{}; return nil }),
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	for b.Loop() {
		if err := sender.Send(ctx, &client.Message{Body: []byte("x")}); err != nil {
			b.Fatal(err)
		}
		<-started
		b.StopTimer()
		<-time.After(5 * time.Millisecond) // the pool asks again
		b.StartTimer()
	}
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func BenchmarkYield(b *testing.B) {
	task, ctx := new(worker.Task), b.Context()
	for b.Loop() {
		if err := task.Yield(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
