// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// recorder is a provider that keeps its spans.
type recorder struct {
	embedded.TracerProvider
	spans []*span
}

type tracer struct {
	embedded.Tracer
	r *recorder
}

type span struct {
	noop.Span
	name    string
	kind    trace.SpanKind
	context trace.SpanContext
	parent  trace.SpanContext
	status  codes.Code
	ended   bool
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer { return &tracer{r: r} }

func (t *tracer) Start(ctx context.Context, name string, o ...trace.SpanStartOption) (context.Context, trace.Span) {
	config := trace.NewSpanStartConfig(o...)
	parent := trace.SpanContextFromContext(ctx)
	own := trace.SpanContextConfig{TraceID: parent.TraceID(), SpanID: trace.SpanID{7: byte(len(t.r.spans) + 1)}, TraceFlags: trace.FlagsSampled}
	if !parent.IsValid() {
		own.TraceID = trace.TraceID{15: byte(len(t.r.spans) + 1)}
	}
	s := &span{name: name, kind: config.SpanKind(), parent: parent, context: trace.NewSpanContext(own)}
	t.r.spans = append(t.r.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *span) SpanContext() trace.SpanContext          { return s.context }
func (s *span) SetStatus(c codes.Code, _ string)        { s.status = c }
func (s *span) End(...trace.SpanEndOption)              { s.ended = true }
func (s *span) RecordError(error, ...trace.EventOption) {}

func TestHandlerIsPartOfTheSendersTrace(t *testing.T) {
	r := &recorder{}
	ctx, sending := r.Tracer("").Start(t.Context(), "checkout")
	shared := map[string]any{"plan": "paid"}
	m := client.Message{Properties: shared}
	Inject(ctx, &m)
	if len(shared) != 1 {
		t.Fatalf("the caller's map was changed: %v", shared)
	}
	if m.Properties["plan"] != "paid" || m.Properties["Diagnostic-Id"] != m.Properties["traceparent"] {
		t.Fatalf("properties %v", m.Properties)
	}

	for _, carried := range []string{"traceparent", "Diagnostic-Id"} {
		task := &worker.Task{Received: &client.Received{Source: "orders"}}
		task.Properties = map[string]any{carried: m.Properties[carried]}
		fails := errors.New("no")
		h := Middleware(&Options{Provider: r})(worker.HandlerFunc(func(ctx context.Context, _ *worker.Task) error {
			if !trace.SpanContextFromContext(ctx).IsValid() {
				t.Error("the handler has no span")
			}
			return fails
		}))
		if err := h.Handle(t.Context(), task); !errors.Is(err, fails) {
			t.Fatal(err)
		}
		s := r.spans[len(r.spans)-1]
		if s.parent.TraceID() != sending.SpanContext().TraceID() || s.parent.SpanID() != sending.SpanContext().SpanID() {
			t.Errorf("%s: the handler's span is in %v, not below the sender's", carried, s.parent)
		}
		if s.name != "process orders" || s.kind != trace.SpanKindConsumer || s.status != codes.Error || !s.ended {
			t.Errorf("%s: span %+v", carried, s)
		}
	}
}

func TestMessageThatIsSentOnKeepsItsTrace(t *testing.T) {
	r := &recorder{}
	ctx, _ := r.Tracer("").Start(t.Context(), "second")
	m := client.Message{Properties: map[string]any{"traceparent": "00-first"}}
	Inject(ctx, &m)
	if m.Properties["traceparent"] != "00-first" {
		t.Errorf("properties %v", m.Properties)
	}
}

func TestNothingIsWrittenWithoutATrace(t *testing.T) {
	m := client.Message{}
	Inject(t.Context(), &m)
	if m.Properties != nil {
		t.Errorf("properties %v", m.Properties)
	}
}

func TestSpanEndsWhenTheHandlerPanics(t *testing.T) {
	r := &recorder{}
	h := Middleware(&Options{Provider: r})(worker.HandlerFunc(func(context.Context, *worker.Task) error { panic("no") }))
	func() {
		defer func() { _ = recover() }()
		_ = h.Handle(t.Context(), &worker.Task{Received: &client.Received{}})
	}()
	if !r.spans[0].ended {
		t.Error("the span did not end")
	}
}
