// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// wordyApp has much to say.
type wordyApp struct{ nullApp }

func (a *wordyApp) Attach(l *Link) {
	switch l.Address() {
	case "refused":
		l.Refuse(Errorf(CondNotFound, "%s", strings.Repeat("no ", 1000)))
	case "properties":
		l.Accept(Accept{Properties: append([]byte{0xa1, 200}, make([]byte, 600)...)[:602]})
	default:
		l.Accept(Accept{Credit: 10})
	}
}

func (a *wordyApp) Transfer(l *Link, in *Incoming) {
	l.Settle(in.Delivery, frame.Rejected(&Error{
		Condition: CondInternalError, Description: strings.Repeat("ü", 1000), Info: make([]byte, 1000),
	}))
}

// The peer's max-frame-size holds for everything that it is sent, not for transfers
// only. What does not fit is said with fewer words, refused, or ends the connection.
func TestNothingIsLargerThanThePeerTakes(t *testing.T) {
	long := strings.Repeat("x", 600)
	for _, tt := range []struct {
		name string
		in   []byte
		want []string // in what the peer is told
		over bool     // the connection ends
	}{
		{"answer", encode(0, 0, &frame.Attach{Name: "l", Role: frame.Receiver, Source: &frame.Source{Address: long}}, nil),
			[]string{`attach "l" handle=0 sender snd=0 rcv=0 no-source`, "detach handle=0", "amqp:frame-size-too-small"}, false},
		{"properties", encode(0, 0, &frame.Attach{Name: "l", Role: frame.Receiver, Source: &frame.Source{Address: "properties"}}, nil),
			[]string{`no-source`, "amqp:frame-size-too-small"}, false},
		{"refusal", encode(0, 0, &frame.Attach{Name: "l", Role: frame.Receiver, Source: &frame.Source{Address: "refused"}}, nil),
			[]string{`no-source`, `amqp:not-found: no no no`, "..."}, false},
		{"name", encode(0, 0, &frame.Attach{Name: long, Role: frame.Receiver, Source: &frame.Source{Address: "q"}}, nil),
			[]string{`close error="amqp:frame-size-too-small`}, true},
		{"rejection", slicesOf(
			encode(0, 0, &frame.Attach{Name: "l", Target: &frame.Target{Address: "q"}}, nil),
			encode(0, 0, &frame.Transfer{HasDeliveryID: true, DeliveryTag: []byte("t")}, []byte("x"))),
			[]string{"disposition receiver 0-0", "üü"}, false},
	} {
		m := NewMachine(new(wordyApp), Config{}, time.Unix(0, 0))
		err := m.Feed(time.Unix(0, 0), slicesOf(
			frame.AppendProtocol(nil, frame.ProtocolAMQP),
			encode(0, 0, &frame.Open{ContainerID: "p", MaxFrameSize: 512}, nil),
			encode(0, 0, &frame.Begin{IncomingWindow: 10, HandleMax: 9}, nil), tt.in))
		out := m.Take()
		text := printFrames(t, out)
		for b := out[8:]; len(b) > 0; {
			n := frame.ParseHeader(b).Size
			if n > 512 {
				t.Errorf("%s: a frame of %d bytes", tt.name, n)
			}
			b = b[n:]
		}
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the peer was told\n%swant %s", tt.name, text, want)
			}
		}
		if (err != nil) != tt.over {
			t.Errorf("%s: Feed returned %v", tt.name, err)
		}
	}
}
