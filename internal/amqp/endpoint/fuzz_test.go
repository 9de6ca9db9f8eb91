// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// FuzzMachine feeds a peer's bytes, at once and one by one, to an App that agrees
// to everything. Neither may panic, both must say the same, and what is kept must
// stay in proportion to what came.
func FuzzMachine(f *testing.F) {
	sasl := slicesOf(
		frame.AppendProtocol(nil, frame.ProtocolSASL),
		encode(frame.TypeSASL, 0, &frame.Init{Mechanism: "ANONYMOUS"}, nil),
	)
	open := slicesOf(
		frame.AppendProtocol(nil, frame.ProtocolAMQP),
		encode(0, 0, &frame.Open{ContainerID: "c", MaxFrameSize: 600, ChannelMax: 9}, nil),
		encode(0, 0, &frame.Begin{IncomingWindow: 3, HandleMax: 9}, nil),
	)
	send := slicesOf(
		encode(0, 0, &frame.Attach{Name: "s", Target: &frame.Target{Address: "q"}}, nil),
		encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, []byte("payload")),
		encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t"), DeliveryID: 1, More: true}, []byte("pay")),
		encode(0, 0, &frame.Transfer{}, []byte("load")),
		encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t"), DeliveryID: 2, More: true}, []byte("pay")),
		encode(0, 0, &frame.Transfer{Aborted: true}, nil),
	)
	receive := slicesOf(
		encode(0, 0, &frame.Attach{Name: "r", Handle: 1, Role: frame.Receiver, ReceiverSettleMode: 1, Source: &frame.Source{Address: "q"}}, nil),
		encode(0, 0, &frame.Flow{HasNextIncomingID: true, IncomingWindow: 2, HasHandle: true, Handle: 1, HasLinkCredit: true, LinkCredit: 4, HasDeliveryCount: true}, nil),
		encode(0, 0, &frame.Disposition{Role: frame.Receiver, First: 0, Last: 9, State: frame.Released()}, nil),
		encode(0, 0, &frame.Disposition{Role: frame.Receiver, First: 0, Last: 9, Settled: true, State: frame.State{
			Kind: frame.StateModified, Annotations: codec.AppendValue(nil, codec.Map(codec.Symbol("a"), codec.Int(1))),
		}}, nil),
		encode(0, 0, &frame.Flow{HasNextIncomingID: true, NextIncomingID: 2, IncomingWindow: 9, HasHandle: true, Handle: 1, HasLinkCredit: true, LinkCredit: 9, Drain: true, Echo: true}, nil),
	)
	leave := slicesOf(
		encode(0, 0, &frame.Detach{Closed: true, Error: Errorf("a:b", "c")}, nil),
		encode(0, 0, new(frame.End), nil),
		encode(0, 0, new(frame.Close), nil),
	)
	f.Add(slicesOf(sasl, open, send, receive, leave))
	f.Add(slicesOf(open, receive, send))
	f.Add(slicesOf(open, send, receive, send, leave))
	f.Add([]byte("AMQP"))

	f.Fuzz(func(t *testing.T, in []byte) {
		whole, wholeErr := play(t, in, len(in))
		split, splitErr := play(t, in, 1)
		if whole != split {
			t.Fatalf("at once the peer is told\n%s%v\na byte at a time\n%s%v", whole, wholeErr, split, splitErr)
		}
	})
}

// FuzzPerformatives does the same with input that gets further: each piece of it
// becomes the body of a well-formed frame of a peer that has opened.
func FuzzPerformatives(f *testing.F) {
	body := func(p performative, payload string) []byte {
		b := append(p.Append(nil), payload...)
		return append([]byte{byte(len(b))}, b...)
	}
	begin := body(&frame.Begin{IncomingWindow: 3, HandleMax: 9}, "")
	f.Add(slicesOf(begin,
		body(&frame.Attach{Name: "s", Target: &frame.Target{Address: "q"}}, ""),
		body(&frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, "payload"),
		body(&frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t"), DeliveryID: 1, More: true}, "pay"),
		body(&frame.Transfer{}, "load"),
		body(&frame.Detach{Closed: true}, ""),
		body(new(frame.End), ""),
		begin,
	))
	f.Add(slicesOf(begin,
		body(&frame.Attach{Name: "s", Target: &frame.Target{Address: "q"}}, ""),
		body(&frame.Attach{Name: "r", Handle: 1, Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, ""),
		body(&frame.Attach{Name: "r", Handle: 2, Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, ""),
		body(&frame.Flow{HasNextIncomingID: true, IncomingWindow: 1, HasHandle: true, Handle: 2, HasLinkCredit: true, LinkCredit: 4}, ""),
		body(&frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, "one"),
		body(&frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t"), DeliveryID: 1}, "two"),
		body(&frame.Disposition{Role: frame.Receiver, Last: 5, State: frame.Released()}, ""),
		body(&frame.Flow{HasNextIncomingID: true, NextIncomingID: 1, IncomingWindow: 9, HasHandle: true, Handle: 2, HasLinkCredit: true, LinkCredit: 9, Drain: true}, ""),
		body(&frame.Disposition{Role: frame.Receiver, Last: 5, Settled: true, State: frame.Accepted()}, ""),
		body(new(frame.Close), ""),
	))
	f.Fuzz(func(t *testing.T, in []byte) {
		stream := slicesOf(
			frame.AppendProtocol(nil, frame.ProtocolAMQP),
			encode(0, 0, &frame.Open{MaxFrameSize: 512}, nil),
		)
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			stream = append(stream, amqpFrame(0, in[1:1+n]...)...)
			in = in[1+n:]
		}
		whole, wholeErr := play(t, stream, len(stream))
		split, splitErr := play(t, stream, 7)
		if whole != split {
			t.Fatalf("at once the peer is told\n%s%v\nin pieces\n%s%v", whole, wholeErr, split, splitErr)
		}
		for _, piece := range []int{7, len(stream)} {
			app := newQueueApp()
			app.crowded = 2
			if paused, err := playTo(t, app, stream, piece); paused != whole {
				t.Fatalf("at once the peer is told\n%s%v\nwith pauses\n%s%v", whole, wholeErr, paused, err)
			}
		}
	})
}

// play feeds in to a fresh machine in pieces and returns what the peer is told.
func play(t *testing.T, in []byte, piece int) (told string, err error) {
	return playTo(t, newQueueApp(), in, piece)
}

func playTo(t *testing.T, app *queueApp, in []byte, piece int) (told string, err error) {
	now := time.Unix(0, 0)
	m := NewMachine(app, Config{MaxFrameSize: 4096, IncomingWindow: 64}, now)
	var out []byte
	for rest := in; len(rest) > 0 && err == nil; {
		n := min(max(piece, 1), len(rest))
		err = m.Feed(now, rest[:n])
		for again, paused := m.Paused(); paused && err == nil; again, paused = m.Paused() {
			err = m.Feed(now, again)
		}
		rest = rest[n:]
		if most := 64*len(in) + 4096; len(m.out.bytes)+m.out.queue > most || m.partial > len(in) {
			t.Fatalf("%d bytes in, %d out, %d queued, %d partial", len(in), len(m.out.bytes), m.out.queue, m.partial)
		}
	}
	for b := m.Take(); len(b) > 0; b = m.Take() {
		out = append(out, b...)
	}
	if err == nil {
		m.Abort(errIdle)
	}
	if n := len(app.closed); n != 1 {
		t.Fatalf("Closed was called %d times", n)
	}
	if m.links != 0 || m.partial != 0 || m.out.queue != 0 {
		t.Fatalf("left behind: %d links, %d partial, %d queued", m.links, m.partial, m.out.queue)
	}
	return printFrames(t, out), err
}
