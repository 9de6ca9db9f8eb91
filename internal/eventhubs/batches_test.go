// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// batched attaches a receiver that takes batches as they are stored.
func batched(p *peerOf, selector string) *amqp.Receiver {
	p.t.Helper()
	o := from(selector)
	o.Properties = map[string]any{names.Batches: true}
	r := p.receiver(partition(0), o)
	if r.Properties()[names.Batches] != true {
		p.t.Fatalf("the answer has the properties %v", r.Properties())
	}
	return r
}

// unpack returns the events of a delivery of batches, as their numbers and bodies.
func unpack(t testing.TB, m *amqp.Message) (events []string) {
	t.Helper()
	for _, data := range m.Data {
		b, err := message.ReadEventBatch(data)
		if err != nil {
			t.Fatal(err)
		}
		var s message.EventScanner
		s.Open(b.Stored)
		n := 0
		for ; s.Next(); n++ {
			var e amqp.Message
			if err := e.UnmarshalBinary(s.Event()); err != nil {
				t.Fatal(err)
			}
			if n >= b.Skip {
				events = append(events, fmt.Sprintf("%d %s", b.First+int64(n), e.GetData()))
			}
		}
		if s.Err() != nil || n != b.Count || b.At.IsZero() {
			t.Fatalf("batch %+v has %d events: %v", b, n, s.Err())
		}
	}
	return events
}

func TestBatchesAsTheyAreStored(t *testing.T) {
	p := start(t).login(t, rootRule)
	p.send("h/Partitions/0", "a")
	s := p.sender("h/Partitions/0")
	if err := s.Send(p.ctx(), batchOf(t, event("", "b"), event("", "c"), event("", "d")), nil); err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{
		earliest:                     "0 a, 1 b, 2 c, 3 d",
		"x-opt-sequence-number > 1":  "2 c, 3 d",
		"x-opt-sequence-number >= 1": "1 b, 2 c, 3 d",
	} {
		r := batched(p, selector)
		if got := strings.Join(unpack(t, p.next(r)), ", "); got != want {
			t.Errorf("from %q: %s, want %s", selector, got, want)
		}
	}
}

func TestBatchesShareDeliveries(t *testing.T) {
	p := start(t).login(t, rootRule)
	large, small := bytes.Repeat([]byte("x"), 100<<10), bytes.Repeat([]byte("y"), 10<<10)
	p.send("h/Partitions/0", string(large))
	for range 12 {
		p.send("h/Partitions/0", string(small))
	}
	r := batched(p, earliest)
	deliveries, events := 0, 0
	for events < 13 {
		m := p.next(r)
		size := 0
		for _, data := range m.Data {
			size += len(data)
		}
		if size > mostBatches && len(m.Data) > 1 {
			t.Errorf("%d batches of %d bytes in one delivery", len(m.Data), size)
		}
		deliveries++
		events += len(unpack(t, m))
	}
	if deliveries > 6 {
		t.Errorf("13 batches came in %d deliveries", deliveries)
	}
}
