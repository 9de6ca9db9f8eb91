// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// hub is what the tests of events work on.
const hub = `
hubs:
  - {name: clicks, partitionCount: 3, consumerGroups: [{name: dashboard}]}
`

// publish sends events to a hub or partition.
func publish(t *testing.T, c *client.Client, address string, ms ...*client.Message) {
	t.Helper()
	s, err := c.OpenSender(deadline(t), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendBatch(deadline(t), ms); err != nil {
		t.Fatal(err)
	}
}

// eventBodies returns events with these bodies.
func eventBodies(texts ...string) (ms []*client.Message) {
	for _, b := range texts {
		ms = append(ms, &client.Message{Body: []byte(b)})
	}
	return ms
}

// wantEvents reads events until it has as many as are wanted.
func wantEvents(t *testing.T, r *client.EventReader, want ...string) (es []*client.Received) {
	t.Helper()
	var got []string
	for len(got) < len(want) {
		ms, err := r.Receive(deadline(t), len(want)-len(got))
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		for _, m := range ms {
			got = append(got, string(m.Body))
		}
		es = append(es, ms...)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("events %q, want %q", got, want)
	}
	return es
}

func openReader(t *testing.T, c *client.Client, o *client.EventReaderOptions) *client.EventReader {
	t.Helper()
	r, err := c.OpenEventReader(deadline(t), "clicks", "1", o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func after(n client.SeqNo) *client.SeqNo { return &n }

func TestReadEvents(t *testing.T) {
	c := triagetest.Start(t, hub).Client()
	ids, err := c.Partitions(deadline(t), "clicks")
	if err != nil || !slices.Equal(ids, []string{"0", "1", "2"}) {
		t.Fatalf("partitions %q, %v", ids, err)
	}
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b", "c")...)
	first := openReader(t, c, nil)
	events := wantEvents(t, first, "a", "b", "c")
	if e := events[1]; e.SeqNo != 1 || time.Since(e.Enqueued) > time.Hour || e.ID == "" {
		t.Errorf("event %+v", e)
	}
	latest := openReader(t, c, &client.EventReaderOptions{Latest: true})
	group := openReader(t, c, &client.EventReaderOptions{Group: "dashboard", After: after(1)})
	timed := openReader(t, c, &client.EventReaderOptions{Since: events[0].Enqueued})
	publish(t, c, "clicks/Partitions/1", eventBodies("d")...)
	wantEvents(t, first, "d")
	wantEvents(t, latest, "d")
	wantEvents(t, group, "c", "d")
	wantEvents(t, timed, "a", "b", "c", "d")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if ms, err := first.Receive(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d events at the end, %v", len(ms), err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := first.Receive(deadline(t), 1); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a closed reader: %v", err)
	}
}

func TestReceiveReturnsAtLeastOne(t *testing.T) {
	c := triagetest.Start(t, hub).Client()
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b")...)
	r := openReader(t, c, nil)
	for _, want := range []string{"a", "b"} {
		es, err := r.Receive(deadline(t), 0)
		if err != nil || len(es) != 1 || string(es[0].Body) != want {
			t.Fatalf("limit 0: %d events, %v", len(es), err)
		}
	}
}

func TestEventsOfAKeyStayTogether(t *testing.T) {
	c := triagetest.Start(t, hub).Client()
	for i := range 20 {
		publish(t, c, "clicks", &client.Message{PartitionKey: "visitor-7", Body: []byte(fmt.Sprint(i))})
	}
	for _, id := range []string{"0", "1", "2"} {
		r, err := c.OpenEventReader(deadline(t), "clicks", id, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		ms, err := r.Receive(ctx, 1)
		cancel()
		if err == nil && (ms[0].PartitionKey != "visitor-7" || ms[0].SeqNo != 0) {
			t.Errorf("partition %s has %+v", id, ms[0])
		}
	}
}

func TestReaderWithEpochExcludesOthers(t *testing.T) {
	c := triagetest.Start(t, hub).Client()
	one, two := int64(1), int64(2)
	first := openReader(t, c, &client.EventReaderOptions{Epoch: &one})
	second := openReader(t, c, &client.EventReaderOptions{Epoch: &two})
	stolen := func(err error) bool {
		e, ok := errors.AsType[*client.Error](err)
		return ok && e.Code == "amqp:link:stolen" && errors.Is(err, client.ErrNotAllowed)
	}
	if _, err := first.Receive(deadline(t), 1); !stolen(err) {
		t.Errorf("the first reader: %v", err)
	}
	if _, err := c.OpenEventReader(deadline(t), "clicks", "1", &client.EventReaderOptions{Epoch: &one}); !stolen(err) {
		t.Errorf("a lower epoch: %v", err)
	}
	publish(t, c, "clicks/Partitions/1", eventBodies("a")...)
	wantEvents(t, second, "a")
}

func TestEventReaderIsRefused(t *testing.T) {
	c := triagetest.Start(t, hub).Client()
	for _, tt := range []struct {
		hub, partition string
		o              *client.EventReaderOptions
		want           error
	}{
		{"none", "0", nil, client.ErrNotFound},
		{"clicks", "9", nil, client.ErrInvalid},
		{"clicks", "9", &client.EventReaderOptions{Latest: true}, client.ErrInvalid},
		{"clicks", "0", &client.EventReaderOptions{Group: "none"}, client.ErrNotFound},
		{"clicks", "0", &client.EventReaderOptions{Latest: true, Since: time.Now()}, client.ErrInvalid},
		{"clicks", "0", &client.EventReaderOptions{After: after(99)}, client.ErrInvalid},
	} {
		if _, err := c.OpenEventReader(deadline(t), tt.hub, tt.partition, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("%s/%s %+v: %v, want %v", tt.hub, tt.partition, tt.o, err, tt.want)
		}
	}
	if _, err := c.Partitions(deadline(t), "none"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("partitions of no hub: %v", err)
	}
}

// A reader goes on where it was when the broker was away.
func TestEventReaderSurvivesARestart(t *testing.T) {
	b := triagetest.Start(t, hub)
	c := b.Client()
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b", "c")...)
	r := openReader(t, c, nil)
	waiting := openReader(t, c, &client.EventReaderOptions{Latest: true})
	wantEvents(t, r, "a", "b")
	b.Crash()
	publish(t, c, "clicks/Partitions/1", eventBodies("d")...)
	wantEvents(t, r, "c", "d")
	wantEvents(t, waiting, "d")
}

// deaf is a connection over which the broker does not hear a word.
type deaf struct {
	net.Conn
	word string
}

func (d deaf) Write(b []byte) (int, error) {
	other := bytes.Repeat([]byte("x"), len(d.word))
	return d.Conn.Write(bytes.ReplaceAll(b, []byte(d.word), other))
}

// A broker that knows no batches sends each event by itself.
func TestReadEventsWithoutBatches(t *testing.T) {
	b := triagetest.Start(t, hub)
	var w wire
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := w.dial(ctx, network, address)
			return deaf{conn, "triagemq:batches"}, err
		},
	})
	must(t, err)
	defer c.Close()
	publish(t, c, "clicks/Partitions/1", eventBodies("a", "b", "c")...)
	publish(t, c, "clicks/Partitions/1", &client.Message{Body: []byte("d"), Properties: map[string]any{"k": "v"}})
	r := openReader(t, c, &client.EventReaderOptions{After: after(0)})
	es := wantEvents(t, r, "b", "c", "d")
	if last := es[2]; last.SeqNo != 3 || last.Properties["k"] != "v" || last.Source != "clicks/ConsumerGroups/$Default/Partitions/1" || last.Enqueued.IsZero() {
		t.Errorf("event %+v", last)
	}
	w.cut()
	publish(t, c, "clicks/Partitions/1", eventBodies("e")...)
	wantEvents(t, r, "e")
}
