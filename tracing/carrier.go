// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"

	"github.com/triagemq/triagemq/client"
)

// The application properties that carry a trace.
const (
	traceParent  = "traceparent"
	diagnosticID = "Diagnostic-Id" // has the content of traceparent
)

var format = propagation.TraceContext{}

// Inject writes the trace of ctx into the properties of a message. It replaces the
// map, because the caller's may be in use elsewhere. A message that has a trace keeps it, for
// example when it is sent on.
func Inject(ctx context.Context, m *client.Message) {
	if _, has := m.Properties[traceParent]; has {
		return
	}
	fields := propagation.MapCarrier{}
	format.Inject(ctx, fields)
	if len(fields) == 0 {
		return // nothing to trace
	}
	properties := make(map[string]any, len(m.Properties)+len(fields)+1)
	for k, v := range m.Properties {
		properties[k] = v
	}
	for k, v := range fields {
		properties[k] = v
	}
	if _, has := properties[diagnosticID]; !has {
		properties[diagnosticID] = fields[traceParent]
	}
	m.Properties = properties
}

// Extract returns ctx with the trace that a message carries, if it carries one.
func Extract(ctx context.Context, m *client.Message) context.Context {
	fields := propagation.MapCarrier{}
	for _, name := range format.Fields() {
		if text, ok := m.Properties[name].(string); ok {
			fields[name] = text
		}
	}
	if fields[traceParent] == "" {
		fields[traceParent], _ = m.Properties[diagnosticID].(string)
	}
	return format.Extract(ctx, fields)
}
