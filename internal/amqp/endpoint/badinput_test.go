// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// attachedPeer returns a machine whose peer has opened and attached a sender with
// handle 0 and a receiver with handle 1 on channel 0.
func attachedPeer(t testing.TB, app App, cfg Config) *Machine {
	t.Helper()
	m := NewMachine(app, cfg, time.Unix(0, 0))
	in := frame.AppendProtocol(nil, frame.ProtocolAMQP)
	for _, p := range []performative{
		&frame.Open{ContainerID: "peer", MaxFrameSize: 65536, ChannelMax: 65535},
		&frame.Begin{IncomingWindow: 1 << 30, OutgoingWindow: 1 << 30, HandleMax: 1 << 20},
		&frame.Attach{Name: "s", Handle: 0, Source: &frame.Source{}, Target: &frame.Target{Address: "q"}},
		&frame.Attach{Name: "r", Handle: 1, Role: frame.Receiver, Source: &frame.Source{Address: "q"}, Target: &frame.Target{}},
	} {
		in = append(in, encode(frame.TypeAMQP, 0, p, nil)...)
	}
	if err := m.Feed(time.Unix(0, 0), in); err != nil {
		t.Fatal(err)
	}
	m.Take()
	return m
}

// amqpFrame is a frame with an arbitrary body.
func amqpFrame(channel uint16, body ...byte) []byte {
	b := append(frame.AppendHeader(nil, frame.TypeAMQP, channel), body...)
	frame.SetSize(b, 0)
	return b
}

func TestBadInputIsAnsweredAsSpecified(t *testing.T) {
	type attach = frame.Attach
	cases := []struct {
		name string
		in   []byte
		want string // in what the peer is told
	}{
		{"oversized frame", []byte{0, 1, 0, 1, 2, 0, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"frame shorter than its header", []byte{0, 0, 0, 7, 2, 0, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"data offset inside the header", []byte{0, 0, 0, 8, 1, 0, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"data offset behind the frame", []byte{0, 0, 0, 8, 3, 0, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"SASL frame after SASL", []byte{0, 0, 0, 8, 2, 1, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"unknown frame type", []byte{0, 0, 0, 8, 2, 7, 0, 0}, "close error=\"amqp:connection:framing-error"},
		{"body that is no performative", amqpFrame(0, 0x41), "close error=\"amqp:decode-error"},
		{"performative cut short", amqpFrame(0, 0x00, 0x53, 0x14, 0xc0, 9, 1), "close error=\"amqp:decode-error"},
		{"unknown performative", amqpFrame(0, 0x00, 0x53, 0x77, 0x45), "close error=\"amqp:not-implemented"},
		{"transfer without handle", amqpFrame(0, 0x00, 0x53, 0x14, 0x45), "close error=\"amqp:decode-error"},
		{"second open", encode(0, 0, &frame.Open{}, nil), "close error=\"amqp:not-allowed"},
		{"begin on a mapped channel", encode(0, 0, &frame.Begin{}, nil), "close error=\"amqp:not-allowed"},
		{"begin that answers nothing", encode(0, 1, &frame.Begin{HasRemoteChannel: true}, nil), "close error=\"amqp:not-allowed"},
		{"begin above channel-max", encode(0, 5000, &frame.Begin{}, nil), "close error=\"amqp:connection:framing-error"},
		{"wrong channel", encode(0, 9, &frame.Transfer{}, nil), "close error=\"amqp:not-allowed"},
		{"handle above handle-max", encode(0, 0, &attach{Name: "x", Handle: 1024}, nil), "close error=\"amqp:connection:framing-error"},
		{"handle that is attached", encode(0, 0, &attach{Name: "x", Handle: 1}, nil), "end error=\"amqp:session:handle-in-use"},
		{"transfer on unknown handle", encode(0, 0, &frame.Transfer{Handle: 9}, nil), "end error=\"amqp:session:unattached-handle"},
		{"flow on unknown handle", encode(0, 0, &frame.Flow{Handle: 9, HasHandle: true}, nil), "end error=\"amqp:session:unattached-handle"},
		{"detach of unknown handle", encode(0, 0, &frame.Detach{Handle: 1 << 31}, nil), "end error=\"amqp:session:unattached-handle"},
		{"transfer on a link we send on", encode(0, 0, &frame.Transfer{Handle: 1}, nil), "end error=\"amqp:not-allowed"},
		{"delivery without id", encode(0, 0, &frame.Transfer{Handle: 0}, nil), "detach handle=0 closed=true error=\"amqp:invalid-field"},
		{"delivery inside of another", slicesOf(
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a"), More: true}, nil),
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("b"), DeliveryID: 1}, nil),
		), "detach handle=0 closed=true error=\"amqp:invalid-field"},
		{"message too large", encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a")}, make([]byte, 2001)),
			"detach handle=0 closed=true error=\"amqp:link:message-size-exceeded"},
		{"message too large in parts", slicesOf(
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a"), More: true}, make([]byte, 1500)),
			encode(0, 0, &frame.Transfer{}, make([]byte, 501)),
		), "detach handle=0 closed=true error=\"amqp:link:message-size-exceeded"},
		{"too much that is not complete", encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a"), More: true}, make([]byte, 1801)),
			"detach handle=0 closed=true error=\"amqp:resource-limit-exceeded"},
		{"more transfers than credit", bytes.Repeat(encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a")}, nil), 5),
			"detach handle=0 closed=true error=\"amqp:link:transfer-limit-exceeded"},
		{"more transfers than window", bytes.Repeat(encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("a"), More: true}, nil), 9),
			"end error=\"amqp:session:window-violation"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := &player{t: t, links: map[string]*Link{}}
			m := attachedPeer(t, p, Config{IncomingWindow: 8, MaxPartial: 1800})
			err := m.Feed(time.Unix(0, 0), c.in)
			got := printFrames(t, m.Take())
			if !strings.Contains(got, c.want) {
				t.Fatalf("the peer was told\n%swant %s", got, c.want)
			}
			if closed := strings.Contains(c.want, "close error"); closed != (err != nil) {
				t.Errorf("Feed returned %v", err)
			}
			if closed := strings.Contains(p.log.String(), "closed: amqp"); closed != (err != nil) {
				t.Errorf("the App heard:\n%s", &p.log)
			}
		})
	}
}

func slicesOf(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

func TestEarlyInputIsLimited(t *testing.T) {
	sasl := frame.AppendProtocol(nil, frame.ProtocolSASL)
	amqp := frame.AppendProtocol(nil, frame.ProtocolAMQP)
	cases := []struct {
		name string
		in   []byte
		err  error
		want string
	}{
		{"garbage", []byte("G"), errProtocol, "> header 3\n"},
		{"HTTP", []byte("GET / HTTP/1.1\r\n\r\n"), errProtocol, "> header 3\n"},
		{"TLS to a plain port", []byte{0x16, 3, 1, 2, 0, 1}, errProtocol, "> header 3\n"},
		{"AMQP 0-9-1", []byte("AMQP\x00\x00\x09\x01"), errProtocol, "> header 3\n"},
		{"large SASL frame", append(sasl, 0, 0, 0x10, 1, 2, 1, 0, 0), nil, "> header 3\n> sasl-mechanisms [ANONYMOUS PLAIN]\n"},
		{"open in place of sasl-init", append(sasl, encode(frame.TypeSASL, 0, &frame.Open{}, nil)...), errLogin,
			"> header 3\n> sasl-mechanisms [ANONYMOUS PLAIN]\n> sasl-outcome code=1\n"},
		{"large frame before open", append(amqp, 0, 0, 0x10, 1, 2, 0, 0, 0), nil, "> 0 close error=\"amqp:connection:framing-error"},
		{"begin before open", append(amqp, encode(0, 0, &frame.Begin{}, nil)...), nil, "> 0 close error=\"amqp:not-allowed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := NewMachine(&player{t: t}, Config{}, time.Unix(0, 0))
			err := m.Feed(time.Unix(0, 0), c.in)
			if err == nil || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("Feed returned %v, want %v", err, c.err)
			}
			if got := printFrames(t, m.Take()); !strings.Contains(got, c.want) {
				t.Errorf("the peer was told\n%swant %s", got, c.want)
			}
		})
	}
}

func TestOutcomeLeavesAlone(t *testing.T) {
	m := NewMachine(&player{t: t}, Config{}, time.Unix(0, 0))
	in := slicesOf(
		frame.AppendProtocol(nil, frame.ProtocolSASL),
		encode(frame.TypeSASL, 0, &frame.Init{Mechanism: "ANONYMOUS"}, nil),
		frame.AppendProtocol(nil, frame.ProtocolAMQP),
		encode(0, 0, &frame.Open{ContainerID: "hasty"}, nil),
	)
	if err := m.Feed(time.Unix(0, 0), in); err != nil {
		t.Fatal(err)
	}
	first, second := printFrames(t, m.Take()), printFrames(t, m.Take())
	if !strings.HasSuffix(first, "sasl-outcome code=0\n") || !strings.HasPrefix(second, "> header 0\n") {
		t.Fatalf("first write:\n%ssecond write:\n%s", first, second)
	}
}

func TestPeerThatDoesNotReadIsCutOff(t *testing.T) {
	p := &player{t: t, links: map[string]*Link{}}
	m := attachedPeer(t, p, Config{HighOutput: 10_000, MaxOutput: 50_000})
	credit := encode(0, 0, &frame.Flow{IncomingWindow: 1 << 30, Handle: 1, HasHandle: true, LinkCredit: 1000, HasLinkCredit: true}, nil)
	if err := m.Feed(time.Unix(0, 0), credit); err != nil {
		t.Fatal(err)
	}
	l := p.links["r/sender"]
	for l.Credit() > 0 {
		l.Send(Outgoing{Tag: []byte("t"), Payload: make([]byte, 1000)})
	}
	if n := len(m.out.bytes); n < 10_000 || n > 12_000 {
		t.Fatalf("credit ran out with %d bytes of output, want soon after 10000", n)
	}
	// Once the output is written the App is asked to go on.
	p.log.Reset()
	m.Take()
	if err := m.Advance(time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if got := p.log.String(); !strings.HasPrefix(got, "credit r/sender") {
		t.Fatalf("after the output was taken the App heard %q, want credit", got)
	}
	// An App that does not ask is stopped for the peer's sake.
	for range 100 {
		l.Send(Outgoing{Tag: []byte("t"), Payload: make([]byte, 1000)})
	}
	if err := m.Advance(time.Unix(0, 0)); !errors.Is(err, errSlow) {
		t.Fatalf("with %d bytes of output: %v, want %v", len(m.out.bytes), err, errSlow)
	}
}
