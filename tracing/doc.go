// SPDX-License-Identifier: Apache-2.0

// Package tracing makes one OpenTelemetry trace of sending a message, its wait in the
// broker, and the work on it.
//
//	pool := worker.Pool{ … Middleware: []worker.Middleware{tracing.Middleware(nil)}}
//
// The trace travels with the message, in its application properties: traceparent and
// tracestate as the W3C defines them, and Diagnostic-Id, which the Azure SDKs write and
// read. So a producer or consumer that uses one of those is part of the same trace.
//
// The broker passes these properties on unread. The wait of a message is the attribute
// messaging.triagemq.wait of the span of its handler, in seconds.
//
// # Not here
//
// Exporting: set a provider with [go.opentelemetry.io/otel.SetTracerProvider], or pass
// one in [Options]. Without any, nothing is recorded and nothing costs more than a call.
package tracing
