// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

// entities is what every broker of this suite starts with. Tests do not share hubs, so
// that they can run side by side.
const entities = `
security:
  rules:
    - {name: SendOnly, rights: [Send], primaryKey: c2VuZC1vbmx5LWtleQ==}
    - {name: ListenOnly, rights: [Listen], primaryKey: bGlzdGVuLW9ubHkta2V5}
hubs:
  - {name: any, partitionCount: 4}
  - {name: one, partitionCount: 4}
  - {name: keys, partitionCount: 4}
  - {name: refused, partitionCount: 2}
  - {name: large, partitionCount: 1}
  - {name: positions, partitionCount: 2}
  - {name: latest, partitionCount: 1}
  - {name: overtaken, partitionCount: 1}
  - {name: prefetch, partitionCount: 1}
  - {name: groups, partitionCount: 1, consumerGroups: [audit, billing]}
  - {name: properties, partitionCount: 3}
  - {name: roundtrip, partitionCount: 1}
  - {name: bodies, partitionCount: 1}
  - {name: steal, partitionCount: 1}
  - {name: same-epoch, partitionCount: 1}
  - {name: lower-epoch, partitionCount: 1}
  - {name: mixed-epochs, partitionCount: 1}
  - {name: other-groups, partitionCount: 2, consumerGroups: [audit]}
  - {name: five, partitionCount: 1, consumerGroups: [audit]}
  - {name: unknown, partitionCount: 2}
  - {name: secured, partitionCount: 1}
  - {name: tls, partitionCount: 1}
  - {name: websocket, partitionCount: 1}
  - {name: restart, partitionCount: 2}
  - {name: balanced, partitionCount: 6}
  - {name: greedy, partitionCount: 6}
  - {name: orders, partitionCount: 4}
  - {name: clicks, partitionCount: 4}
`

// shared is the broker that most tests use. It is set by TestMain.
var shared *running.Broker

func TestMain(m *testing.M) {
	if os.Getenv(processorVariable) != "" {
		runProcessor()
		return
	}
	running.Main(m, entities, func(b *running.Broker) { shared = b })
}

// failFast does not retry: a test sees the first error.
var failFast = azeventhubs.RetryOptions{MaxRetries: -1}

// patient retries often enough to outlast a restart.
var patient = azeventhubs.RetryOptions{MaxRetries: 100, RetryDelay: 50 * time.Millisecond, MaxRetryDelay: 500 * time.Millisecond}

// hub is a producer of one event hub, and what is needed to read it.
type hub struct {
	t          *testing.T
	ctx        context.Context // bounds the test, so that a hang is a failure with a name
	name       string
	connection string
	retries    azeventhubs.RetryOptions
	producer   *azeventhubs.ProducerClient
}

// open connects to a hub of the shared broker.
func open(t *testing.T, name string) *hub {
	t.Helper()
	return openOn(t, shared.Connection(), name, failFast)
}

func openOn(t *testing.T, connection, name string, retries azeventhubs.RetryOptions) *hub {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	p, err := azeventhubs.NewProducerClientFromConnectionString(connection, name, &azeventhubs.ProducerClientOptions{RetryOptions: retries})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(p.Close) })
	return &hub{t: t, ctx: ctx, name: name, connection: connection, retries: retries, producer: p}
}

// closing closes a client although its test has ended.
func closing(f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = f(ctx)
}

// route says where a batch goes; the zero value leaves it to the broker.
type route = azeventhubs.EventDataBatchOptions

func toPartition(id string) *route { return &route{PartitionID: to.Ptr(id)} }

// send sends events with these bodies as one batch.
func (h *hub) send(r *route, bodies ...string) {
	h.t.Helper()
	var events []*azeventhubs.EventData
	for _, body := range bodies {
		events = append(events, &azeventhubs.EventData{Body: []byte(body)})
	}
	if err := h.trySend(r, events...); err != nil {
		h.t.Fatalf("send to %s: %v", h.name, err)
	}
}

func (h *hub) trySend(r *route, events ...*azeventhubs.EventData) error {
	batch, err := h.producer.NewEventDataBatch(h.ctx, r)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := batch.AddEventData(e, nil); err != nil {
			return err
		}
	}
	return h.producer.SendEventDataBatch(h.ctx, batch, nil)
}

// group is a consumer of a hub.
func (h *hub) group(name string) *azeventhubs.ConsumerClient {
	h.t.Helper()
	c, err := azeventhubs.NewConsumerClientFromConnectionString(h.connection, h.name, name, &azeventhubs.ConsumerClientOptions{RetryOptions: h.retries})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { closing(c.Close) })
	return c
}

// reader reads one partition.
type reader struct {
	*hub
	*azeventhubs.PartitionClient
}

func (h *hub) reader(group, partition string, from azeventhubs.StartPosition) *reader {
	h.t.Helper()
	return h.readerWith(group, partition, azeventhubs.PartitionClientOptions{StartPosition: from})
}

func (h *hub) readerWith(group, partition string, o azeventhubs.PartitionClientOptions) *reader {
	h.t.Helper()
	p, err := h.group(group).NewPartitionClient(partition, &o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { closing(p.Close) })
	return &reader{h, p}
}

// read takes exactly n events.
func (r *reader) read(n int) []*azeventhubs.ReceivedEventData {
	r.t.Helper()
	var out []*azeventhubs.ReceivedEventData
	for len(out) < n {
		events, err := r.ReceiveEvents(r.ctx, n-len(out), nil)
		if err != nil {
			r.t.Fatalf("%s: receive event %d of %d: %v", r.name, len(out)+1, n, err)
		}
		out = append(out, events...)
	}
	return out
}

// wants reads as many events as there are bodies and compares.
func (r *reader) wants(what string, bodies ...string) []*azeventhubs.ReceivedEventData {
	r.t.Helper()
	events := r.read(len(bodies))
	if got, want := text(events), strings.Join(bodies, " "); got != want {
		r.t.Errorf("%s: read %q, want %q", what, got, want)
	}
	return events
}

// refused fails the test unless the reader gets an error with that text.
func (r *reader) refused(what, want string) error {
	r.t.Helper()
	events, err := r.ReceiveEvents(r.ctx, 1, nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		r.t.Fatalf("%s: read %q, %v, want an error with %q", what, text(events), err, want)
	}
	return err
}

func text(events []*azeventhubs.ReceivedEventData) string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e.Body)
	}
	return strings.Join(out, " ")
}

// wantCode fails the test unless err is the SDK's error with that code.
func wantCode(t *testing.T, what string, err error, code azeventhubs.ErrorCode) {
	t.Helper()
	if e, ok := errors.AsType[*azeventhubs.Error](err); !ok || e.Code != code {
		t.Errorf("%s: %v (%T), want an error with code %s", what, err, err, code)
	}
}

var earliest = azeventhubs.StartPosition{Earliest: to.Ptr(true)}
