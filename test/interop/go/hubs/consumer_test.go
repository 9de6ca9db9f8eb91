// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
	"github.com/coder/websocket"
)

// numbers returns from..to-1 as bodies.
func numbers(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint(i))
	}
	return out
}

func TestPositions(t *testing.T) {
	t.Parallel()
	const count = 12
	h := open(t, "positions")
	h.send(toPartition("0"), "of another partition")
	for i := 0; i < count; i += 3 { // a position may be in the middle of a batch
		h.send(toPartition("1"), numbers(i, i+3)...)
	}
	bodies := numbers(0, count)
	from := func(what string, p azeventhubs.StartPosition, want []string) []*azeventhubs.ReceivedEventData {
		t.Helper()
		r := h.reader(all, "1", p)
		defer closing(r.Close) // there may be five
		return r.wants(what, want...)
	}
	events := from("earliest", earliest, bodies)
	for i, e := range events {
		if e.SequenceNumber != int64(i) || e.Offset == "" || e.EnqueuedTime == nil || e.PartitionKey != nil {
			t.Errorf("event %d: sequence number %d, offset %q, time %v, key %v", i, e.SequenceNumber, e.Offset, e.EnqueuedTime, e.PartitionKey)
		}
		if i > 0 && e.EnqueuedTime.Before(*events[i-1].EnqueuedTime) {
			t.Errorf("event %d is of %v, the one before of %v", i, e.EnqueuedTime, events[i-1].EnqueuedTime)
		}
	}
	from("earliest, inclusive", azeventhubs.StartPosition{Earliest: to.Ptr(true), Inclusive: true}, bodies)
	for i, e := range events {
		for _, inclusive := range []bool{true, false} {
			first := i
			if !inclusive {
				first++
			}
			for what, p := range map[string]azeventhubs.StartPosition{
				"offset":          {Offset: &e.Offset, Inclusive: inclusive},
				"sequence number": {SequenceNumber: &e.SequenceNumber, Inclusive: inclusive},
			} {
				if first < count {
					from(fmt.Sprintf("from %s %d, inclusive %t", what, i, inclusive), p, bodies[first:])
				}
			}
		}
		if i%3 != 1 {
			continue
		}
		// The time of a batch is that of all its events; batches may share a millisecond.
		at := *e.EnqueuedTime
		first, after := 0, 0
		for _, e := range events {
			if e.EnqueuedTime.Before(at) {
				first++
			}
			if !e.EnqueuedTime.After(at) {
				after++
			}
		}
		from("from the time of "+bodies[i], azeventhubs.StartPosition{EnqueuedTime: &at, Inclusive: true}, bodies[first:])
		if after < count {
			from("after the time of "+bodies[i], azeventhubs.StartPosition{EnqueuedTime: &at}, bodies[after:])
		}
	}
	long := time.Unix(0, 0).Add(-time.Hour)
	from("from 1969", azeventhubs.StartPosition{EnqueuedTime: &long}, bodies)
}

// A reader from the end, or without a position, sees what comes after it was opened.
func TestLatest(t *testing.T) {
	t.Parallel()
	h := open(t, "latest")
	h.send(nil, "old", "old")
	ahead := time.Now().Add(-time.Nanosecond)
	for what, from := range map[string]azeventhubs.StartPosition{
		"latest":            {Latest: to.Ptr(true)},
		"latest, inclusive": {Latest: to.Ptr(true), Inclusive: true},
		"no position":       {},
	} {
		r := h.reader(all, "0", from)
		first := make(chan *azeventhubs.ReceivedEventData, 1)
		go func() {
			defer close(first)
			if events, err := r.ReceiveEvents(h.ctx, 1, nil); err == nil {
				first <- events[0]
			} else {
				t.Errorf("%s: %v", what, err)
			}
		}()
		tick := time.NewTicker(20 * time.Millisecond) // the SDK does not say when it has opened the link
		var e *azeventhubs.ReceivedEventData
		for n := 0; e == nil; n++ {
			h.send(nil, fmt.Sprint(what, " ", n))
			select {
			case e = <-first:
			case <-tick.C:
			}
		}
		tick.Stop()
		if !strings.HasPrefix(string(e.Body), what) || e.EnqueuedTime.Before(ahead.Truncate(time.Millisecond)) {
			t.Errorf("%s: the first event is %q of %v", what, e.Body, e.EnqueuedTime)
		}
	}
}

// A position behind the end waits for the event; one before the beginning starts there.
func TestPositionsOutsideThePartition(t *testing.T) {
	t.Parallel()
	h := open(t, "overtaken")
	h.send(nil, "0", "1")
	ahead := h.reader(all, "0", azeventhubs.StartPosition{SequenceNumber: to.Ptr(int64(1))})
	got := make(chan string, 1)
	go func() {
		events, err := ahead.ReceiveEvents(h.ctx, 1, nil)
		got <- fmt.Sprint(text(events), " ", err)
	}()
	h.send(nil, "2")
	if s := <-got; s != "2 <nil>" {
		t.Errorf("after the last event: read %s, want 2", s)
	}
	h.reader(all, "0", azeventhubs.StartPosition{SequenceNumber: to.Ptr(int64(-5)), Inclusive: true}).wants("from -5", "0", "1", "2")
}

// With a prefetch smaller and larger than what there is, and without one.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	const batches, size = 40, 50
	h := open(t, "prefetch")
	var want []string
	for i := range batches {
		some := numbers(i*size, (i+1)*size)
		h.send(nil, some...)
		want = append(want, some...)
	}
	for _, prefetch := range []int32{0, -1, 1, 7, 5000} {
		r := h.readerWith(all, "0", azeventhubs.PartitionClientOptions{StartPosition: earliest, Prefetch: prefetch})
		var got []*azeventhubs.ReceivedEventData
		for len(got) < len(want) {
			got = append(got, r.read(min(333, len(want)-len(got)))...)
		}
		if text(got) != strings.Join(want, " ") {
			t.Errorf("prefetch %d: the events are not those sent, in order", prefetch)
		}
		closing(r.Close)
	}
}

func TestGroupsReadAlike(t *testing.T) {
	t.Parallel()
	h := open(t, "groups")
	h.send(nil, "a", "b")
	for _, group := range []string{all, "audit", "billing", "AUDIT", "$default"} {
		h.reader(group, "0", earliest).wants(group, "a", "b")
	}
}

func TestProperties(t *testing.T) {
	t.Parallel()
	h := open(t, "properties")
	start := time.Now()
	consumer := h.group(all)
	p, err := h.producer.GetEventHubProperties(h.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "properties" || strings.Join(p.PartitionIDs, " ") != "0 1 2" || p.CreatedOn.IsZero() || p.CreatedOn.After(start) || p.GeoReplicationEnabled {
		t.Errorf("properties of the hub: %+v", p)
	}
	if again, err := consumer.GetEventHubProperties(h.ctx, nil); err != nil || fmt.Sprint(again) != fmt.Sprint(p) {
		t.Errorf("a consumer sees %+v, %v, a producer %+v", again, err, p)
	}
	empty, err := consumer.GetPartitionProperties(h.ctx, "1", nil)
	if err != nil || !empty.IsEmpty || empty.LastEnqueuedSequenceNumber != -1 || empty.PartitionID != "1" || empty.EventHubName != "properties" {
		t.Errorf("properties of an empty partition: %+v, %v", empty, err)
	}
	h.send(toPartition("1"), "a", "b", "c")
	full, err := consumer.GetPartitionProperties(h.ctx, "1", nil)
	if err != nil {
		t.Fatal(err)
	}
	e := h.reader(all, "1", earliest).read(3)[2]
	if full.IsEmpty || full.BeginningSequenceNumber != 0 || full.LastEnqueuedSequenceNumber != e.SequenceNumber ||
		full.LastEnqueuedOffset != e.Offset || !full.LastEnqueuedOn.Equal(*e.EnqueuedTime) {
		t.Errorf("properties of a partition: %+v, its last event %+v", full, e)
	}
	// After the last event by its properties: the next one is the first.
	r := h.reader(all, "1", azeventhubs.StartPosition{Offset: &full.LastEnqueuedOffset})
	h.send(toPartition("1"), "d")
	r.wants("after the last offset", "d")
	if again, err := h.producer.GetPartitionProperties(h.ctx, "0", nil); err != nil || !again.IsEmpty {
		t.Errorf("another partition: %+v, %v", again, err)
	}
}

func TestReadUnknown(t *testing.T) {
	t.Parallel()
	h := open(t, "unknown")
	h.reader("no-such-group", "0", earliest).refused("an unknown group", "could not be found")
	if err := h.reader(all, "2", earliest).refused("partition 2 of two", ""); strings.Contains(err.Error(), "deadline") {
		t.Error(err)
	}
	if err := h.reader(all, "zero", earliest).refused("a partition that is no number", ""); strings.Contains(err.Error(), "deadline") {
		t.Error(err)
	}
	h.reader(all, "0", azeventhubs.StartPosition{Offset: to.Ptr("nonsense")}).refused("an offset that is none", "offset")
	open(t, "no-such-hub").reader(all, "0", earliest).refused("an unknown hub", "could not be found")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	h := openOn(t, shared.SecureConnection(), "tls", failFast)
	h.send(nil, "over TLS")
	h.reader(all, "0", earliest).wants("TLS", "over TLS")
}

func TestWebSocket(t *testing.T) {
	t.Parallel()
	h := open(t, "websocket")
	dial := func(ctx context.Context, p azeventhubs.WebSocketConnParams) (net.Conn, error) {
		c, _, err := websocket.Dial(ctx, p.Host, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
		if err != nil {
			return nil, err
		}
		return websocket.NetConn(ctx, c, websocket.MessageBinary), nil
	}
	p, err := azeventhubs.NewProducerClientFromConnectionString(shared.SecureConnection(), h.name,
		&azeventhubs.ProducerClientOptions{RetryOptions: failFast, NewWebSocketConn: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing(p.Close) })
	h.producer = p
	h.send(nil, "over a WebSocket")
	h.reader(all, "0", earliest).wants("plain AMQP", "over a WebSocket")
}
