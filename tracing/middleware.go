// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/triagemq/triagemq/worker"
)

// Options are the settings; nil and the zero value are the defaults.
type Options struct {
	// Provider makes the spans; default the global one.
	Provider trace.TracerProvider
}

const scope = "github.com/triagemq/triagemq/tracing"

func (o *Options) tracer() trace.Tracer {
	if o != nil && o.Provider != nil {
		return o.Provider.Tracer(scope)
	}
	return otel.Tracer(scope)
}

// Middleware gives each run of a handler a span in the trace of the message's sender.
func Middleware(o *Options) worker.Middleware {
	tracer := o.tracer()
	return func(next worker.Handler) worker.Handler {
		return worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			ctx, span := tracer.Start(Extract(ctx, &t.Message), "process "+t.Source,
				trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(taskAttributes(t)...))
			defer span.End() // also when the handler panics
			err := next.Handle(ctx, t)
			if err != nil {
				span.RecordError(err)
				span.SetStatus(codes.Error, err.Error())
			}
			return err
		})
	}
}

func taskAttributes(t *worker.Task) []attribute.KeyValue {
	as := []attribute.KeyValue{
		attribute.String("messaging.system", "triagemq"),
		attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.operation.name", "process"),
		attribute.String("messaging.destination.name", t.Source),
		attribute.String("messaging.consumer.group.name", t.Pool),
		attribute.String("messaging.message.id", t.ID),
		attribute.Int("messaging.message.body.size", len(t.Body)),
		attribute.Int("messaging.triagemq.delivery_count", int(t.DeliveryCount)),
	}
	if !t.Enqueued.IsZero() {
		as = append(as, attribute.Float64("messaging.triagemq.wait", time.Since(t.Enqueued).Seconds()))
	}
	if t.Level != nil {
		as = append(as, attribute.Int("messaging.triagemq.level", int(*t.Level)))
	}
	if t.Class != "" {
		as = append(as, attribute.String("messaging.triagemq.class", t.Class))
	}
	return as
}
