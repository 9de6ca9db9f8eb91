// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// peer is a client that writes its frames by hand, and so can break any rule. It uses
// one session, on channel 0, with a window that never closes unless it says so.
type peer struct {
	nc    net.Conn
	in    *bufio.Reader
	next  uint32 // delivery id of the next transfer
	parts []byte // of a delivery that is not complete

	detached bool   // the last outcome was the end of its link
	largest  uint32 // received frame
}

// performative is anything that goes into a frame.
type performative interface{ Append([]byte) []byte }

// incoming is a received frame. Its bytes are a copy.
type incoming struct {
	channel uint16
	code    frame.Code
	fields  codec.Reader
	payload []byte
}

// encode makes a frame.
func encode(t frame.Type, channel uint16, p performative, payload []byte) []byte {
	b := append(p.Append(frame.AppendHeader(nil, t, channel)), payload...)
	frame.SetSize(b, 0)
	return b
}

// raw is a performative that is encoded already.
type raw []byte

func (r raw) Append(dst []byte) []byte { return append(dst, r...) }

// connect opens a connection from an address of this machine and sends nothing.
// The connection ends with the scene.
func (s *scene) connect(from net.IP) (*peer, error) {
	nc, err := s.dialFrom(s.ctx, from)
	if err != nil {
		return nil, err
	}
	s.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	return &peer{nc: nc, in: bufio.NewReader(nc)}, nil
}

// outsider returns a peer that has opened a connection and a session without
// authentication.
func (s *scene) outsider() *peer {
	s.Helper()
	p, err := s.connect(net.IPv4(127, 0, 0, 1))
	if err == nil {
		err = p.open("ANONYMOUS", nil)
	}
	if err != nil {
		s.Fatalf("an unauthenticated peer cannot open a connection: %v", err)
	}
	return p
}

// peer returns a peer that has logged in with a key and begun a session.
func (s *scene) peer(rule access.Rule) *peer {
	s.Helper()
	p, err := s.connect(net.IPv4(127, 0, 0, 1))
	if err == nil {
		err = p.login(rule)
	}
	if err != nil {
		s.Fatalf("log in as %s: %v", rule.Name, err)
	}
	return p
}

func (p *peer) login(rule access.Rule) error {
	return p.open("PLAIN", []byte("\x00"+rule.Name+"\x00"+rule.PrimaryKey))
}

// open does what comes before links: SASL, open, begin.
func (p *peer) open(mechanism string, response []byte) error {
	if err := p.sasl(mechanism, response); err != nil {
		return err
	}
	return p.begin(frame.Open{MaxFrameSize: 64 << 10, ChannelMax: math.MaxUint16}, math.MaxInt32)
}

func (p *peer) sasl(mechanism string, response []byte) error {
	err := p.write(frame.AppendProtocol(nil, frame.ProtocolSASL),
		encode(frame.TypeSASL, 0, &frame.Init{Mechanism: mechanism, Response: response, HasResponse: true}, nil))
	if err != nil {
		return err
	}
	if err := p.protocol(); err != nil {
		return err
	}
	in, err := p.await(frame.CodeOutcome)
	if err != nil {
		return err
	}
	var o frame.Outcome
	if o.Decode(&in.fields); o.Code != frame.OutcomeOK {
		return fmt.Errorf("SASL outcome %d", o.Code)
	}
	return nil
}

// begin opens the connection and a session with a window.
func (p *peer) begin(o frame.Open, window uint32) error {
	o.ContainerID, o.Hostname = "peer", "localhost"
	err := p.write(frame.AppendProtocol(nil, frame.ProtocolAMQP),
		encode(frame.TypeAMQP, 0, &o, nil),
		encode(frame.TypeAMQP, 0, &frame.Begin{IncomingWindow: window, OutgoingWindow: math.MaxInt32, HandleMax: math.MaxUint32}, nil))
	if err != nil {
		return err
	}
	if err := p.protocol(); err != nil {
		return err
	}
	_, err = p.await(frame.CodeBegin)
	return err
}

// protocol reads a protocol header.
func (p *peer) protocol() error {
	var b [8]byte
	if _, err := io.ReadFull(p.in, b[:]); err != nil {
		return err
	}
	if _, ok := frame.ParseProtocol(b[:]); !ok {
		return fmt.Errorf("want a protocol header, got % x", b)
	}
	return nil
}

func (p *peer) write(frames ...[]byte) error {
	for _, b := range frames {
		if _, err := p.nc.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// send writes a performative of the session.
func (p *peer) send(f performative) error { return p.write(encode(frame.TypeAMQP, 0, f, nil)) }

// read returns the next frame that is not empty. A connection that the broker closes
// is an error with its reason.
func (p *peer) read() (incoming, error) {
	for {
		var head [frame.HeaderSize]byte
		if _, err := io.ReadFull(p.in, head[:]); err != nil {
			return incoming{}, err
		}
		h := frame.ParseHeader(head[:])
		if h.Size < frame.HeaderSize || h.Size > 16<<20 {
			return incoming{}, fmt.Errorf("received a frame of %d bytes", h.Size)
		}
		p.largest = max(p.largest, h.Size)
		b := make([]byte, h.Size)
		copy(b, head[:])
		if _, err := io.ReadFull(p.in, b[frame.HeaderSize:]); err != nil {
			return incoming{}, err
		}
		body, err := h.Body(b)
		if err != nil || len(body) == 0 {
			if err != nil {
				return incoming{}, err
			}
			continue // a heartbeat
		}
		in := incoming{channel: h.Channel}
		if in.code, in.fields, in.payload, err = frame.Parse(body); err != nil {
			return in, err
		}
		switch in.code {
		case frame.CodeClose:
			var c frame.Close
			c.Decode(&in.fields)
			return in, closedError("connection", c.Error)
		case frame.CodeEnd:
			var e frame.End
			e.Decode(&in.fields)
			return in, closedError("session", e.Error)
		}
		return in, nil
	}
}

func closedError(what string, e *frame.Error) error {
	if e == nil {
		return fmt.Errorf("the broker closed the %s", what)
	}
	return fmt.Errorf("the broker closed the %s: %s: %s", what, e.Condition, e.Description)
}

// await reads until a frame of a kind comes.
func (p *peer) await(code frame.Code) (incoming, error) {
	for {
		in, err := p.read()
		if err != nil || in.code == code {
			return in, err
		}
	}
}

// refusal is the error of a refused link.
type refusal struct{ condition, text string }

func (r refusal) Error() string { return r.condition + ": " + r.text }

// refused returns the condition with which a link was refused; empty if err is
// something else.
func refused(err error) string {
	if r, ok := errors.AsType[refusal](err); ok {
		return r.condition
	}
	return ""
}

func refusalOf(e *frame.Error) error {
	if e == nil {
		return refusal{text: "without a reason"}
	}
	return refusal{e.Condition, e.Description}
}

// sendTo returns an attach of a link to an address.
func sendTo(handle uint32, addr string) *frame.Attach {
	return &frame.Attach{Name: fmt.Sprintf("to-%d", handle), Handle: handle, Role: frame.Sender,
		SenderSettleMode: frame.SenderMixed, Source: &frame.Source{}, Target: &frame.Target{Address: addr}}
}

// receiveFrom returns an attach of a link from an address.
func receiveFrom(handle uint32, addr string) *frame.Attach {
	return &frame.Attach{Name: fmt.Sprintf("from-%d", handle), Handle: handle, Role: frame.Receiver,
		SenderSettleMode: frame.SenderMixed, Source: &frame.Source{Address: addr}, Target: &frame.Target{Address: "here"}}
}

// attach attaches a link and returns the answer, or why it was refused.
func (p *peer) attach(a *frame.Attach) (frame.Attach, error) {
	if err := p.send(a); err != nil {
		return frame.Attach{}, err
	}
	var answer frame.Attach // with a handle of the broker's
	for {
		in, err := p.read()
		if err != nil {
			return frame.Attach{}, err
		}
		switch in.code {
		case frame.CodeAttach:
			var got frame.Attach
			got.Decode(&in.fields)
			if got.Name != a.Name {
				continue
			}
			if answer = got; answer.Source != nil && answer.Target != nil {
				return answer, nil
			}
		case frame.CodeDetach:
			var d frame.Detach
			d.Decode(&in.fields)
			if answer.Name == "" || d.Handle != answer.Handle {
				continue // of another link
			}
			_ = p.send(&frame.Detach{Handle: a.Handle, Closed: true})
			return frame.Attach{}, refusalOf(d.Error)
		}
	}
}

// credit lets the broker send so many deliveries on a link.
func (p *peer) credit(handle, n uint32) error {
	return p.send(&frame.Flow{HasNextIncomingID: true, IncomingWindow: math.MaxInt32, OutgoingWindow: math.MaxInt32,
		Handle: handle, HasHandle: true, HasDeliveryCount: true, LinkCredit: n, HasLinkCredit: true})
}

// maxPart is the most payload that goes into one frame.
const maxPart = 60 << 10

// transfer sends a payload in as many frames as it takes.
func (p *peer) transfer(handle uint32, format uint32, payload []byte) error {
	for first := true; ; first = false {
		n := min(len(payload), maxPart)
		t := frame.Transfer{Handle: handle, More: n < len(payload), MessageFormat: format}
		if first {
			t.DeliveryID, t.HasDeliveryID = p.next, true
			t.DeliveryTag = binary.BigEndian.AppendUint32(nil, p.next)
			p.next++
		}
		if err := p.write(encode(frame.TypeAMQP, 0, &t, payload[:n])); err != nil {
			return err
		}
		if payload = payload[n:]; len(payload) == 0 {
			return nil
		}
	}
}

// settled waits for the outcome of a transfer of ours: nil for accepted.
func (p *peer) settled() error {
	for {
		in, err := p.read()
		if err != nil {
			return err
		}
		switch in.code {
		case frame.CodeDisposition:
			var d frame.Disposition
			d.Decode(&in.fields)
			switch d.State.Kind {
			case frame.StateAccepted:
				return nil
			case frame.StateRejected:
				return refusalOf(d.State.Error)
			}
			return fmt.Errorf("outcome %v", d.State.Kind)
		case frame.CodeDetach:
			var d frame.Detach
			d.Decode(&in.fields)
			p.detached = true
			return refusalOf(d.Error)
		}
	}
}

// receive waits for a whole delivery, or the end of a link.
func (p *peer) receive() (payload []byte, err error) {
	for {
		in, err := p.read()
		if err != nil {
			return nil, err
		}
		switch in.code {
		case frame.CodeTransfer:
			var t frame.Transfer
			t.Decode(&in.fields)
			p.parts = append(p.parts, in.payload...)
			if !t.More {
				payload, p.parts = p.parts, nil
				return payload, nil
			}
		case frame.CodeDetach:
			var d frame.Detach
			d.Decode(&in.fields)
			return nil, refusalOf(d.Error)
		}
	}
}

// within bounds the wait for what comes next.
func (p *peer) within(d time.Duration) *peer {
	p.nc.SetDeadline(time.Now().Add(d))
	return p
}

// dialogue is a pair of links to a node that answers requests.
type dialogue struct {
	*peer
	node   string
	to, at uint32 // handles
}

// talk attaches to a node that answers requests, with handles from first on.
func (p *peer) talk(node string, first uint32) (*dialogue, error) {
	d := &dialogue{p, node, first, first + 1}
	if _, err := p.attach(sendTo(d.to, node)); err != nil {
		return nil, fmt.Errorf("attach to %s: %w", node, err)
	}
	if _, err := p.attach(receiveFrom(d.at, node)); err != nil {
		return nil, fmt.Errorf("attach from %s: %w", node, err)
	}
	return d, nil
}

// request makes a request for an operation.
func request(operation string, body codec.Value, properties ...message.Pair) []byte {
	d := message.Draft{MessageID: codec.String("1"), ReplyTo: "here", Value: &body,
		Application: append([]message.Pair{{Name: "operation", Value: codec.String(operation)}}, properties...)}
	return d.Encode(nil)
}

// ask makes a request and returns the status of the answer, and the answer.
func (d *dialogue) ask(payload []byte) (int64, *message.Message, error) {
	if err := d.credit(d.at, math.MaxInt16); err != nil {
		return 0, nil, err
	}
	if err := d.transfer(d.to, 0, payload); err != nil {
		return 0, nil, err
	}
	answer, err := d.receive()
	if err != nil {
		return 0, nil, err
	}
	m, err := message.Parse(answer)
	if err != nil {
		return 0, nil, err
	}
	v, _ := m.Property("status-code")
	status, _ := v.Int()
	return status, m, nil
}

// operation sends a request to the management node of an entity.
func (d *dialogue) operation(name string, pairs ...codec.Value) (int64, *message.Message, error) {
	return d.ask(request("com.microsoft:"+name, codec.Map(pairs...)))
}

// putToken proves a right with a token.
func (p *peer) putToken(rule access.Rule, path string, expires time.Time, first uint32) error {
	resource := "sb://localhost/" + path
	d, err := p.talk("$cbs", first)
	if err != nil {
		return err
	}
	return d.token(rule, resource, expires)
}

// token puts another token over links to $cbs that are there.
func (d *dialogue) token(rule access.Rule, resource string, expires time.Time) error {
	status, m, err := d.ask(request("put-token", codec.String(access.SignToken(rule, resource, expires)),
		message.Pair{Name: "type", Value: codec.String("servicebus.windows.net:sastoken")},
		message.Pair{Name: "name", Value: codec.String(resource)}))
	if err != nil {
		return err
	}
	if status/100 != 2 {
		v, _ := m.Property("status-description")
		text, _ := v.Str()
		return fmt.Errorf("the token was rejected: %d %s", status, text)
	}
	return nil
}

// wideArray is an array of n nulls, which takes ten bytes: nulls have no width
// [AMQP 1.6.24].
func wideArray(n uint32) []byte {
	b := []byte{0xf0, 0, 0, 0, 5}
	b = binary.BigEndian.AppendUint32(b, n)
	return append(b, 0x40)
}

// longText returns n bytes of text.
func longText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}

// pause waits a moment, unless the scene ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// contextUntil bounds a context, or one of its own, in time.
func contextUntil(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithDeadline(ctx, at)
}

// within bounds the wait for what comes next.
func (d *dialogue) within(t time.Duration) *dialogue {
	d.peer.within(t)
	return d
}
