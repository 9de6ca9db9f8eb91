// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/tracing"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

// A trace goes from a sender through a real broker to the handler.
func TestTraceGoesThroughTheBroker(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	c, err := client.New(b.ConnectionString(), &client.Options{Hooks: tracing.Hooks(nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Without a provider the hook passes the caller's span on.
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	s, err := c.OpenSender(t.Context(), "orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(trace.ContextWithSpanContext(t.Context(), caller), &client.Message{Body: []byte("one")}); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var got trace.SpanContext
	pool := worker.Pool{
		Client: c, Source: "orders", Middleware: []worker.Middleware{tracing.Middleware(nil)},
		Handler: worker.HandlerFunc(func(ctx context.Context, _ *worker.Task) error {
			got = trace.SpanContextFromContext(ctx)
			stop()
			return nil
		}),
	}
	if err := pool.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got.TraceID() != caller.TraceID() {
		t.Errorf("the handler is in trace %v, the sender in %v", got.TraceID(), caller.TraceID())
	}
}

func ExampleInject() {
	m := client.Message{Body: []byte("hello")}
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}})
	tracing.Inject(trace.ContextWithSpanContext(context.Background(), span), &m)
	fmt.Println(m.Properties["traceparent"])
	// Output: 00-00000000000000000000000000000001-0000000000000002-00
}
