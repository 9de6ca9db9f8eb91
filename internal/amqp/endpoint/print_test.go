// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// printFrames tells in words what bytes for a peer say, a line for each protocol
// header and frame.
func printFrames(t *testing.T, b []byte) string {
	t.Helper()
	var s strings.Builder
	for len(b) > 0 {
		if id, ok := frame.ParseProtocol(b); ok {
			fmt.Fprintf(&s, "> header %d\n", id)
			b = b[8:]
			continue
		}
		h := frame.ParseHeader(b)
		body, err := h.Body(b[:h.Size])
		if err != nil {
			t.Fatalf("frame of %d bytes: %v", h.Size, err)
		}
		b = b[h.Size:]
		if len(body) == 0 {
			s.WriteString("> heartbeat\n")
			continue
		}
		r := codec.NewReader(body)
		code, fields := r.Composite()
		text := printPerformative(frame.Code(code), &fields)
		if r.Err() != nil || fields.Err() != nil || fields.More() {
			t.Fatalf("%v: %v, %v", frame.Code(code), r.Err(), fields.Err())
		}
		if payload := r.Rest(); len(payload) > 40 {
			text += fmt.Sprintf(" payload=%d bytes", len(payload))
		} else if len(payload) > 0 {
			text += fmt.Sprintf(" payload=%s", payload)
		}
		if h.Type == frame.TypeAMQP {
			text = fmt.Sprintf("%d %s", h.Channel, text)
		}
		s.WriteString("> " + text + "\n")
	}
	return s.String()
}

func printPerformative(code frame.Code, r *codec.Reader) string {
	line := code.String()
	add := func(format string, args ...any) { line += fmt.Sprintf(" "+format, args...) }
	switch code {
	case frame.CodeOpen:
		var p frame.Open
		p.Decode(r)
		add("container=%s max-frame=%d channel-max=%d idle=%d", p.ContainerID, p.MaxFrameSize, p.ChannelMax, p.IdleTimeout)
	case frame.CodeBegin:
		var p frame.Begin
		p.Decode(r)
		add("remote=%d next-out=%d in-window=%d handle-max=%d", p.RemoteChannel, p.NextOutgoingID, p.IncomingWindow, p.HandleMax)
	case frame.CodeAttach:
		var p frame.Attach
		p.Decode(r)
		add("%q handle=%d %v snd=%d rcv=%d", p.Name, p.Handle, p.Role, p.SenderSettleMode, p.ReceiverSettleMode)
		if p.Source == nil && p.Target == nil {
			add("no-source no-target")
		}
		if p.Source != nil {
			add("source=%q", p.Source.Address)
		}
		if p.Target != nil {
			add("target=%q", p.Target.Address)
		}
		if p.MaxMessageSize > 0 {
			add("max-message=%d", p.MaxMessageSize)
		}
	case frame.CodeFlow:
		var p frame.Flow
		p.Decode(r)
		add("next-in=%d in-window=%d next-out=%d", p.NextIncomingID, p.IncomingWindow, p.NextOutgoingID)
		if p.HasHandle {
			add("handle=%d count=%d credit=%d", p.Handle, p.DeliveryCount, p.LinkCredit)
		}
		if p.Drain {
			add("drain")
		}
	case frame.CodeTransfer:
		var p frame.Transfer
		p.Decode(r)
		add("handle=%d", p.Handle)
		if p.HasDeliveryID {
			add("id=%d tag=%s", p.DeliveryID, p.DeliveryTag)
		}
		if p.Settled {
			add("settled")
		}
		if p.More {
			add("more")
		}
	case frame.CodeDisposition:
		var p frame.Disposition
		p.Decode(r)
		add("%v %d-%d settled=%v %s", p.Role, p.First, p.Last, p.Settled, printState(&p.State))
	case frame.CodeDetach:
		var p frame.Detach
		p.Decode(r)
		add("handle=%d closed=%v%s", p.Handle, p.Closed, printError(p.Error))
	case frame.CodeEnd:
		var p frame.End
		p.Decode(r)
		line += printError(p.Error)
	case frame.CodeClose:
		var p frame.Close
		p.Decode(r)
		line += printError(p.Error)
	case frame.CodeMechanisms:
		var p frame.Mechanisms
		p.Decode(r)
		add("%v", p.Server)
	case frame.CodeChallenge:
		var p frame.Challenge
		p.Decode(r)
		add("%q", p.Challenge)
	case frame.CodeOutcome:
		var p frame.Outcome
		p.Decode(r)
		add("code=%d", p.Code)
	}
	return line
}

func printError(e *frame.Error) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf(" error=%q", e.Error())
}

func printState(s *frame.State) string {
	names := []string{"no-state", "received", "accepted", "rejected", "released", "modified", "declared", "transactional", "unknown"}
	return names[s.Kind] + printError(s.Error)
}
