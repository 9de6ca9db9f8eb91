// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"math"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/script"
)

// encode makes a frame.
func encode(t frame.Type, channel uint16, p performative, payload []byte) []byte {
	b := append(p.Append(frame.AppendHeader(nil, t, channel)), payload...)
	frame.SetSize(b, 0)
	return b
}

// peerFrame makes the bytes of a command that is named like a performative.
func peerFrame(c script.Command) []byte {
	channel := uint16(c.Int("ch", 0))
	uint := func(key string, otherwise int) uint32 { return uint32(c.Int(key, otherwise)) }
	var p performative
	var payload []byte
	switch c.Name {
	case "header":
		return frame.AppendProtocol(nil, frame.ProtocolID(c.WordInt(0)))
	case "sasl-init":
		return encode(frame.TypeSASL, 0, &frame.Init{
			Mechanism: c.Word(0), Response: []byte(c.Text("response", "")), HasResponse: c.Has("response"),
		}, nil)
	case "sasl-response":
		return encode(frame.TypeSASL, 0, &frame.Response{Response: []byte(c.Word(0))}, nil)
	case "open":
		p = &frame.Open{
			ContainerID: "peer", Hostname: c.Text("host", ""), IdleTimeout: uint("idle", 0),
			MaxFrameSize: uint("max-frame", 4096), ChannelMax: math.MaxUint16,
		}
	case "begin":
		p = &frame.Begin{
			NextOutgoingID: uint("next-out", 0), IncomingWindow: uint("window", 100),
			OutgoingWindow: 100, HandleMax: uint("handle-max", 1000),
		}
	case "attach":
		p = attachFrame(c)
	case "flow":
		p = &frame.Flow{
			NextIncomingID: uint("next-in", 0), HasNextIncomingID: true, IncomingWindow: uint("window", 100),
			NextOutgoingID: uint("next-out", 0), OutgoingWindow: 100,
			Handle: uint("handle", 0), HasHandle: c.Has("handle"),
			DeliveryCount: uint("count", 0), HasDeliveryCount: c.Has("count"),
			LinkCredit: uint("credit", 0), HasLinkCredit: c.Has("credit"),
			Drain: c.Has("drain"), Echo: c.Has("echo"),
		}
	case "transfer":
		payload = []byte(c.Text("payload", ""))
		if size := c.Int("size", 0); size > 0 {
			payload = make([]byte, size)
		}
		p = &frame.Transfer{
			Handle: uint("handle", 0), DeliveryID: uint("id", 0), HasDeliveryID: c.Has("id"),
			DeliveryTag: []byte(c.Text("tag", "tag")), Settled: c.Has("settled"),
			More: c.Has("more"), Aborted: c.Has("aborted"),
		}
	case "disposition":
		role := frame.Receiver
		if c.Has("sender") {
			role = frame.Sender
		}
		p = &frame.Disposition{
			Role: role, First: uint("first", 0), Last: uint("last", c.Int("first", 0)),
			Settled: c.Has("settled"), State: state(c),
		}
	case "detach":
		p = &frame.Detach{Handle: uint("handle", 0), Closed: true}
	case "end":
		p = new(frame.End)
	case "close":
		p = new(frame.Close)
	case "heartbeat":
		b := frame.AppendHeader(nil, frame.TypeAMQP, 0)
		frame.SetSize(b, 0)
		return b
	default:
		c.T.Fatalf("line %d: unknown command %q", c.Line, c.Name)
	}
	return encode(frame.TypeAMQP, channel, p, payload)
}

// attachFrame attaches a sender to=address or a receiver from=address.
func attachFrame(c script.Command) *frame.Attach {
	a := &frame.Attach{
		Name: c.Text("name", "link"), Handle: uint32(c.Int("handle", 0)),
		SenderSettleMode:   frame.SenderSettleMode(c.Int("snd", 2)),
		ReceiverSettleMode: frame.ReceiverSettleMode(c.Int("rcv", 0)),
		Source:             &frame.Source{Address: c.Text("from", "")},
		Target:             &frame.Target{Address: c.Text("to", "")},
	}
	if c.Has("from") {
		a.Role = frame.Receiver
	}
	if c.Has("coordinator") {
		a.Target, a.Coordinator = nil, &frame.Coordinator{Capabilities: []string{"amqp:local-transactions"}}
	}
	if c.Has("resume") {
		a.Unsettled = codec.AppendValue(nil, codec.Map(codec.Binary([]byte("tag")), codec.Value{}))
	}
	return a
}
