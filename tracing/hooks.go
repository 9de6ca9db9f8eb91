// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/triagemq/triagemq/client"
)

// Hooks gives each message that a client sends a span of its own, which ends when the
// broker has stored the message, and writes the trace into the message.
func Hooks(o *Options) client.Hooks {
	tracer := o.tracer()
	return client.Hooks{
		Sending: func(ctx context.Context, entity string, m *client.Message) context.Context {
			ctx, _ = tracer.Start(ctx, "send "+entity, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
				attribute.String("messaging.system", "triagemq"),
				attribute.String("messaging.operation.type", "send"),
				attribute.String("messaging.operation.name", "send"),
				attribute.String("messaging.destination.name", entity),
				attribute.String("messaging.message.id", m.ID),
				attribute.Int("messaging.message.body.size", len(m.Body)),
			))
			Inject(ctx, m)
			return ctx
		},
		Sent: func(ctx context.Context, _ string, _ *client.Message, _ time.Duration, err error) {
			span := trace.SpanFromContext(ctx)
			if err != nil {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			span.End()
		},
	}
}
