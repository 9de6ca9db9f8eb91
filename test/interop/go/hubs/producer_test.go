// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

const all = azeventhubs.DefaultConsumerGroup

// last returns the last sequence number of each partition.
func (h *hub) last() map[string]int64 {
	h.t.Helper()
	hub, err := h.producer.GetEventHubProperties(h.ctx, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, id := range hub.PartitionIDs {
		p, err := h.producer.GetPartitionProperties(h.ctx, id, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		out[id] = p.LastEnqueuedSequenceNumber
	}
	return out
}

// A batch without a partition stays together, and batches take turns.
func TestBatchesToTheHubAreSpread(t *testing.T) {
	t.Parallel()
	h := open(t, "any")
	for i := range 8 {
		h.send(nil, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"), fmt.Sprint(i, "c"))
	}
	for id, last := range h.last() {
		if last != 5 {
			t.Errorf("partition %s: last sequence number %d, want 5: two batches of three", id, last)
		}
		for _, batch := range [][]string{strings.Fields(text(h.reader(all, id, earliest).read(6)))[:3]} {
			if batch[0][:1] != batch[1][:1] || batch[0][:1] != batch[2][:1] {
				t.Errorf("partition %s begins with %q: a batch was torn apart", id, batch)
			}
		}
	}
}

func TestBatchToOnePartition(t *testing.T) {
	t.Parallel()
	h := open(t, "one")
	h.send(toPartition("2"), "a", "b")
	h.send(toPartition("2"), "c")
	h.reader(all, "2", earliest).wants("partition 2", "a", "b", "c")
	for id, last := range h.last() {
		if want := map[bool]int64{true: 2, false: -1}[id == "2"]; last != want {
			t.Errorf("partition %s: last sequence number %d, want %d", id, last, want)
		}
	}
}

// Events of one key are in one partition, in order; events of many keys are in all.
func TestKeysKeepTogether(t *testing.T) {
	t.Parallel()
	const keys, rounds = 40, 3
	h := open(t, "keys")
	for round := range rounds {
		for k := range keys {
			h.send(&route{PartitionKey: to.Ptr(fmt.Sprint("key ", k))}, fmt.Sprint(round))
		}
	}
	home := map[string]string{}
	next := map[string]int{}
	for id, last := range h.last() {
		if last < 0 {
			t.Errorf("partition %s has nothing of %d keys", id, keys)
			continue
		}
		for _, e := range h.reader(all, id, earliest).read(int(last) + 1) {
			if e.PartitionKey == nil {
				t.Fatalf("partition %s: event %d has no key", id, e.SequenceNumber)
			}
			k := *e.PartitionKey
			if at, ok := home[k]; ok && at != id {
				t.Errorf("%s is in partition %s and in %s", k, at, id)
			}
			home[k] = id
			if string(e.Body) != fmt.Sprint(next[k]) {
				t.Errorf("%s: event %q, want %d", k, e.Body, next[k])
			}
			next[k]++
		}
	}
	if len(home) != keys {
		t.Errorf("%d keys came back, want %d", len(home), keys)
	}
}

// The service refuses a key on the link of a partition. The SDK does not let it come
// to that, unless the event is an AMQP message that has the annotation.
func TestKeyToAPartitionIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, "refused")
	batch, err := h.producer.NewEventDataBatch(h.ctx, toPartition("1"))
	if err != nil {
		t.Fatal(err)
	}
	m := &azeventhubs.AMQPAnnotatedMessage{
		Body:               azeventhubs.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("keyed")}},
		MessageAnnotations: map[any]any{"x-opt-partition-key": "a key"},
	}
	if err := batch.AddAMQPAnnotatedMessage(m, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.producer.SendEventDataBatch(h.ctx, batch, nil); err == nil {
		t.Error("a batch with a key was accepted by a partition")
	}
	h.send(toPartition("1"), "plain")
	h.reader(all, "1", earliest).wants("partition 1", "plain")
}

// A batch is as large as the link says, and comes back whole. The SDK refuses one that
// is larger.
func TestLargestBatch(t *testing.T) {
	t.Parallel()
	h := open(t, "large")
	batch, err := h.producer.NewEventDataBatch(h.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), 10_000)
	for err == nil {
		err = batch.AddEventData(&azeventhubs.EventData{Body: body}, nil)
	}
	if !errors.Is(err, azeventhubs.ErrEventDataTooLarge) || batch.NumBytes() < 1_000_000 {
		t.Fatalf("the batch ended at %d bytes with %v, want about 1 MiB and %v", batch.NumBytes(), err, azeventhubs.ErrEventDataTooLarge)
	}
	if err := h.producer.SendEventDataBatch(h.ctx, batch, nil); err != nil {
		t.Fatal(err)
	}
	for _, e := range h.reader(all, "0", earliest).read(int(batch.NumEvents())) {
		if !bytes.Equal(e.Body, body) {
			t.Fatalf("event %d has %d bytes, want %d", e.SequenceNumber, len(e.Body), len(body))
		}
	}
	if _, err := h.producer.NewEventDataBatch(h.ctx, &route{MaxBytes: 2 << 20}); err == nil {
		t.Error("a batch of 2 MiB fits the link")
	}
}

func TestSendToUnknown(t *testing.T) {
	t.Parallel()
	h := open(t, "unknown")
	if err := h.trySend(toPartition("2"), &azeventhubs.EventData{Body: []byte("nowhere")}); err == nil {
		t.Error("partition 2 of two took an event")
	}
	gone := open(t, "no-such-hub")
	if err := gone.trySend(nil, &azeventhubs.EventData{Body: []byte("nowhere")}); err == nil {
		t.Error("a hub that does not exist took an event")
	}
	if _, err := gone.producer.GetEventHubProperties(gone.ctx, nil); err == nil {
		t.Error("a hub that does not exist has properties")
	}
	if _, err := h.producer.GetPartitionProperties(h.ctx, "2", nil); err == nil {
		t.Error("partition 2 of two has properties")
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	sender := openOn(t, shared.ConnectionWith("SendOnly", "c2VuZC1vbmx5LWtleQ=="), "secured", failFast)
	sender.send(nil, "a")
	_, err := sender.reader(all, "0", earliest).ReceiveEvents(sender.ctx, 1, nil)
	wantCode(t, "read with a key that may send", err, azeventhubs.ErrorCodeUnauthorizedAccess)

	listener := openOn(t, shared.ConnectionWith("ListenOnly", "bGlzdGVuLW9ubHkta2V5"), "secured", failFast)
	listener.reader(all, "0", earliest).wants("with a key that may listen", "a")
	err = listener.trySend(nil, &azeventhubs.EventData{Body: []byte("b")})
	wantCode(t, "send with a key that may listen", err, azeventhubs.ErrorCodeUnauthorizedAccess)

	forger := openOn(t, shared.ConnectionWith("SendOnly", "forged"), "secured", failFast)
	err = forger.trySend(nil, &azeventhubs.EventData{Body: []byte("b")})
	wantCode(t, "send with a forged key", err, azeventhubs.ErrorCodeUnauthorizedAccess)
}
