// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// payloadsOf returns payloads of the given sizes, each filled with its number.
func payloadsOf(sizes ...int) (ps Payloads) {
	for i, n := range sizes {
		ps.Bytes = append(ps.Bytes, bytes.Repeat([]byte{byte(i)}, n)...)
		ps.Ends = append(ps.Ends, len(ps.Bytes))
	}
	return ps
}

// received reads the deliveries in what a peer was sent.
func received(t *testing.T, out []byte) (payloads [][]byte, ids []uint32) {
	t.Helper()
	var partial []byte
	for len(out) > 0 {
		h := frame.ParseHeader(out)
		body, err := h.Body(out[:h.Size])
		if err != nil {
			t.Fatal(err)
		}
		out = out[h.Size:]
		code, fields, payload, err := frame.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		if code != frame.CodeTransfer {
			continue
		}
		var f frame.Transfer
		if f.Decode(&fields); fields.Err() != nil {
			t.Fatal(fields.Err())
		}
		if f.HasDeliveryID {
			if !f.Settled || f.DeliveryTag == nil || f.MessageFormat != 0 {
				t.Fatalf("not a settled message: %+v", f)
			}
			ids = append(ids, f.DeliveryID)
		}
		if partial = append(partial, payload...); !f.More {
			payloads = append(payloads, partial)
			partial = nil
		}
	}
	return payloads, ids
}

func TestSettledDeliveriesLeaveInOrder(t *testing.T) {
	m, app := trackedPeer(t, 1000)
	ps := payloadsOf(10, 0, 70_000, 5, 300)
	if n, err := app.sender.SendSettled(ps, 0); n != 5 || err != nil {
		t.Fatalf("sent %d, %v", n, err)
	}
	if n, err := app.sender.SendSettled(ps, 3); n != 2 || err != nil {
		t.Fatalf("sent %d of the last two, %v", n, err)
	}
	got, ids := received(t, m.Take())
	want := []int{0, 1, 2, 3, 4, 3, 4}
	if len(got) != len(want) {
		t.Fatalf("%d deliveries, want %d", len(got), len(want))
	}
	for i, p := range want {
		from := 0
		if p > 0 {
			from = ps.Ends[p-1]
		}
		if !bytes.Equal(got[i], ps.Bytes[from:ps.Ends[p]]) || ids[i] != uint32(i) {
			t.Errorf("delivery %d has id %d and %d bytes", i, ids[i], len(got[i]))
		}
	}
	if got := app.sender.Granted(); got != 93 {
		t.Errorf("credit is %d, want 93", got)
	}
}

func TestSettledDeliveriesStopAtCreditAndWindow(t *testing.T) {
	m, app := trackedPeer(t, 3)
	sizes := make([]int, 200)
	for i := range sizes {
		sizes[i] = 8
	}
	ps := payloadsOf(sizes...)
	n, err := app.sender.SendSettled(ps, 0)
	if n != 4 || err != nil { // three leave and one waits
		t.Fatalf("sent %d through a window of 3, %v", n, err)
	}
	if again, _ := app.sender.SendSettled(ps, n); again != 0 {
		t.Fatalf("sent %d while one waits for the window", again)
	}
	if got, _ := received(t, m.Take()); len(got) != 3 {
		t.Fatalf("%d deliveries left", len(got))
	}
	flow := &frame.Flow{
		HasNextIncomingID: true, NextIncomingID: 3, IncomingWindow: 1000, Handle: 1, HasHandle: true,
		HasDeliveryCount: true, DeliveryCount: 3, LinkCredit: 97, HasLinkCredit: true,
	}
	if err := m.Feed(time.Unix(0, 0), appendFrame(nil, flow)); err != nil {
		t.Fatal(err)
	}
	if n, _ := app.sender.SendSettled(ps, n); n != 96 {
		t.Fatalf("sent %d, want as many as there is credit for", n)
	}
	got, ids := received(t, m.Take())
	if len(got) != 97 || got[0][0] != 3 || got[96][0] != 99 || ids[96] != 99 {
		t.Fatalf("%d deliveries, from id %d", len(got), ids[0])
	}
	if n, _ := app.sender.SendSettled(ps, 100); n != 0 {
		t.Fatalf("sent %d without credit", n)
	}
}

func TestSettledDeliveryThatIsTooLarge(t *testing.T) {
	_, app := trackedPeer(t, 100)
	app.sender.remote.MaxMessageSize = 9
	n, err := app.sender.SendSettled(payloadsOf(8, 9, 10, 8), 0)
	if n != 2 || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("sent %d, %v", n, err)
	}
}

// BenchmarkSendSettled measures a delivery of 350 bytes out, a hundred at a time.
func BenchmarkSendSettled(b *testing.B) {
	app := new(trackingApp)
	m := attachedPeer(b, app, Config{})
	const batch = 100
	sizes := make([]int, batch)
	for i := range sizes {
		sizes[i] = 350
	}
	ps := payloadsOf(sizes...)
	flow := &frame.Flow{
		HasNextIncomingID: true, IncomingWindow: 5000, Handle: 1, HasHandle: true,
		HasDeliveryCount: true, LinkCredit: batch, HasLinkCredit: true,
	}
	var in []byte
	b.ReportAllocs()
	for b.Loop() {
		in = appendFrame(in[:0], flow)
		if err := m.Feed(time.Unix(0, 0), in); err != nil {
			b.Fatal(err)
		}
		if n, err := app.sender.SendSettled(ps, 0); n != batch || err != nil {
			b.Fatal(n, err)
		}
		flow.NextIncomingID += batch
		flow.DeliveryCount += batch
		m.Take()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/transfer")
}

// Behind a delivery that is not settled, the ids of settled ones take memory too.
func TestSettledDeliveriesAreWeighed(t *testing.T) {
	m, app := trackedPeer(t, 1000)
	if err := app.sender.Send(Outgoing{Tag: []byte{1}, Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, 60)
	if n, err := app.sender.SendSettled(payloadsOf(sizes...), 0); n != 60 || err != nil {
		t.Fatalf("sent %d, %v", n, err)
	}
	if s := app.sender.session; m.mem.unsettled != s.sent.size() {
		t.Errorf("%d bytes are counted, %d are held", m.mem.unsettled, s.sent.size())
	}
}
