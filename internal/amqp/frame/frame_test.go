// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// part is what every performative and structure can do.
type part interface {
	Append(dst []byte) []byte
	Decode(r *codec.Reader)
}

func encodedMap() []byte {
	return codec.AppendValue(nil, codec.Map(codec.Symbol("key"), codec.Int(7)))
}

// parts is every performative and structure with all of its fields set, and the
// bytes it begins with.
func parts() []struct {
	part   part
	prefix string
} {
	failure := &Error{Condition: "amqp:not-found", Description: "gone", Info: encodedMap()}
	source := &Source{
		Address: "queue", Durable: 2, ExpiryPolicy: "never", Timeout: 5, Dynamic: true,
		DynamicNode: encodedMap(), DistributionMode: "copy", Filter: encodedMap(),
		DefaultOutcome: []byte{0x00, 0x53, 0x26, 0x45},
		Outcomes:       []string{"amqp:accepted:list"}, Capabilities: []string{"queue", "shared"},
	}
	target := &Target{
		Address: "queue", Durable: 1, ExpiryPolicy: "link-detach", Timeout: 5, Dynamic: true,
		DynamicNode: encodedMap(), Capabilities: []string{"topic"},
	}
	return []struct {
		part   part
		prefix string
	}{
		{&Open{
			ContainerID: "me", Hostname: "you", MaxFrameSize: 512, ChannelMax: 9, IdleTimeout: 1000,
			OfferedCapabilities: []string{"a"}, DesiredCapabilities: []string{"b", "c"}, Properties: encodedMap(),
		}, "005310c0"},
		{&Begin{
			RemoteChannel: 3, HasRemoteChannel: true, NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 3,
			HandleMax: 4, OfferedCapabilities: []string{"a"}, DesiredCapabilities: []string{"b"}, Properties: encodedMap(),
		}, "005311c0"},
		{&Attach{
			Name: "link", Handle: 1, Role: Sender, SenderSettleMode: SenderSettled, ReceiverSettleMode: ReceiverSecond,
			Source: source, Target: target, Unsettled: encodedMap(), IncompleteUnsettled: true,
			InitialDeliveryCount: 7, MaxMessageSize: 1 << 40,
			OfferedCapabilities: []string{"a"}, DesiredCapabilities: []string{"b"}, Properties: encodedMap(),
		}, "005312"},
		{&Attach{
			Name: "txn", Role: Sender, SenderSettleMode: SenderMixed,
			Coordinator: &Coordinator{Capabilities: []string{"amqp:local-transactions"}},
		}, "005312c0"},
		{&Flow{
			NextIncomingID: 1, HasNextIncomingID: true, IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4,
			Handle: 5, HasHandle: true, DeliveryCount: 6, HasDeliveryCount: true, LinkCredit: 7, HasLinkCredit: true,
			Available: 8, Drain: true, Echo: true, Properties: encodedMap(),
		}, "005313c0"},
		{&Flow{IncomingWindow: 2, NextOutgoingID: 3, OutgoingWindow: 4}, "005313c00f0b4052025203520440404040404040"},
		{&Transfer{
			Handle: 1, DeliveryID: 2, HasDeliveryID: true, DeliveryTag: []byte("tag"), MessageFormat: 0x80013700,
			Settled: true, More: true, Aborted: true,
		}, "005314c0"},
		{&Transfer{Handle: 0}, "005314c00c0b4340404040404040404040"},
		{&Disposition{Role: Receiver, First: 1, Last: 9, Settled: true, State: Accepted(), Batchable: true}, "005315c0"},
		{&Disposition{Role: Sender, First: 1, Last: 1, State: Rejected(failure)}, "005315c0"},
		{&Disposition{State: State{Kind: StateReceived, Section: &Section{1, 2}}}, "005315c0"},
		{&Disposition{State: State{Kind: StateModified, DeliveryFailed: true, UndeliverableHere: true, Annotations: encodedMap()}}, "005315c0"},
		{&Disposition{State: State{Kind: StateDeclared, Transaction: &Transaction{ID: []byte("t")}}}, "005315c0"},
		{&Disposition{State: State{Kind: StateTransactional, Transaction: &Transaction{
			ID: []byte("t"), Outcome: &State{Kind: StateReleased},
		}}}, "005315c0"},
		{&Detach{Handle: 1, Closed: true, Error: failure}, "005316c0"},
		{&End{Error: failure}, "005317c0"},
		{&End{}, "005317c0020140"},
		{&Close{Error: failure}, "005318c0"},
		{&Close{}, "005318c0020140"},
		{&Mechanisms{Server: []string{"ANONYMOUS", "PLAIN"}}, "005340c0"},
		{&Init{Mechanism: "PLAIN", Response: []byte("\x00u\x00p"), HasResponse: true, Hostname: "h"}, "005341c0"},
		{&Init{Mechanism: "ANONYMOUS"}, "005341c0"},
		{&Challenge{Challenge: []byte("c")}, "005342c0"},
		{&Response{Response: []byte("r")}, "005343c0"},
		{&Outcome{Code: OutcomeAuth, Additional: []byte("a")}, "005344c0"},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, c := range parts() {
		encoded := c.part.Append(nil)
		if got := hex.EncodeToString(encoded); len(got) < len(c.prefix) || got[:len(c.prefix)] != c.prefix {
			t.Errorf("%T begins with %s, want %s", c.part, got, c.prefix)
		}
		r := codec.NewReader(encoded)
		_, fields := r.Composite()
		got := reflect.New(reflect.TypeOf(c.part).Elem()).Interface().(part)
		got.Decode(&fields)
		if r.Err() != nil || fields.Err() != nil || fields.More() || r.Len() > 0 {
			t.Errorf("%T: %v, %v, fields left %v, %d bytes left", c.part, r.Err(), fields.Err(), fields.More(), r.Len())
		}
		if !reflect.DeepEqual(got, c.part) {
			t.Errorf("round trip of %T\n got %+v\nwant %+v", c.part, got, c.part)
		}
	}
}

func TestDefaultsOfAbsentFields(t *testing.T) {
	var open Open
	open.Decode(new(codec.Reader))
	if open.MaxFrameSize != 1<<32-1 || open.ChannelMax != 1<<16-1 {
		t.Errorf("an empty open has max-frame-size %d and channel-max %d", open.MaxFrameSize, open.ChannelMax)
	}
	r := codec.NewReader(codec.AppendValue(nil, codec.List(codec.String("x"), codec.Uint(0), codec.Bool(true))))
	fields := r.List()
	var attach Attach
	attach.Decode(&fields)
	if fields.Err() != nil || attach.SenderSettleMode != SenderMixed || attach.ReceiverSettleMode != ReceiverFirst {
		t.Errorf("a short attach has modes %d and %d, %v", attach.SenderSettleMode, attach.ReceiverSettleMode, fields.Err())
	}
}

func TestMissingFieldsAreReported(t *testing.T) {
	for _, p := range []part{new(Begin), new(Attach), new(Flow), new(Transfer), new(Disposition), new(Detach), new(Init), new(Outcome)} {
		var fields codec.Reader // an empty list
		if p.Decode(&fields); !errors.Is(fields.Err(), errMissing) {
			t.Errorf("an empty %T decodes with %v, want %v", p, fields.Err(), errMissing)
		}
	}
}

func TestParse(t *testing.T) {
	end := &End{Error: &Error{Condition: "amqp:not-found"}}
	short := end.Append(nil)
	long := append([]byte{0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x17}, short[3:]...)
	symbolic := append([]byte("\x00\xa3\x0damqp:end:list"), short[3:]...)
	for _, body := range [][]byte{short, long, symbolic} {
		code, fields, payload, err := Parse(append(bytes.Clone(body), "payload"...))
		var got End
		got.Decode(&fields)
		if code != CodeEnd || string(payload) != "payload" || err != nil || !reflect.DeepEqual(&got, end) {
			t.Errorf("% x is %v %+v with %q, %v", body, code, got.Error, payload, err)
		}
	}
	for _, bad := range []string{"\x00", "\x00\x53\x17", "\x00\x53\x17\x41", "\x00\x53\x17\xc0\x09\x01", "\x45"} {
		if _, _, _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("% x is a performative", bad)
		}
	}
}

func TestLookup(t *testing.T) {
	if v, ok := lookup(encodedMap(), "key"); !ok || v.Kind() != codec.KindInt {
		t.Errorf("key is %v, %v, want the int 7", v, ok)
	}
	for _, m := range [][]byte{nil, {0x40}, {0xc1, 9}, encodedMap()} {
		if v, ok := lookup(m, "other"); ok {
			t.Errorf("% x has %v", m, v)
		}
	}
}

func TestHeader(t *testing.T) {
	b := append(AppendHeader([]byte("before"), TypeSASL, 0x1234), "body"...)
	SetSize(b, len("before"))
	b = b[len("before"):]
	h := ParseHeader(b)
	if want := (Header{Size: 12, Doff: 2, Type: TypeSASL, Channel: 0x1234}); h != want {
		t.Errorf("header %+v, want %+v", h, want)
	}
	if body, err := h.Body(b); string(body) != "body" || err != nil {
		t.Errorf("body %q, %v", body, err)
	}
	for _, doff := range []uint8{0, 1, 4} {
		h.Doff = doff
		if _, err := h.Body(b); !errors.Is(err, ErrHeader) {
			t.Errorf("data offset %d: %v, want %v", doff, err, ErrHeader)
		}
	}
}

func TestProtocolHeader(t *testing.T) {
	for _, id := range []ProtocolID{ProtocolAMQP, ProtocolTLS, ProtocolSASL} {
		if got, ok := ParseProtocol(AppendProtocol(nil, id)); got != id || !ok {
			t.Errorf("protocol %d is read back as %d, %v", id, got, ok)
		}
	}
	for _, bad := range []string{"", "AMQP", "AMQP\x00\x00\x09\x01", "HTTP\x00\x01\x00\x00"} {
		if _, ok := ParseProtocol([]byte(bad)); ok {
			t.Errorf("%q is a protocol header", bad)
		}
	}
}

func TestTransferFitsItsBound(t *testing.T) {
	b := AppendHeader(nil, TypeAMQP, 0)
	b = (&Transfer{
		Handle: 1 << 31, DeliveryID: 1 << 31, HasDeliveryID: true, DeliveryTag: make([]byte, 32),
		MessageFormat: 1 << 31, Settled: true, More: true,
	}).Append(b)
	if len(b) != MaxTransfer {
		t.Errorf("the largest transfer takes %d bytes, MaxTransfer is %d", len(b), MaxTransfer)
	}
}

func TestHotFramesDoNotAllocate(t *testing.T) {
	in := [][]byte{
		(&Transfer{HasDeliveryID: true, DeliveryTag: make([]byte, 16)}).Append(nil),
		(&Disposition{Role: Receiver, Settled: true, State: Accepted()}).Append(nil),
		(&Flow{HasHandle: true, HasLinkCredit: true, LinkCredit: 9}).Append(nil),
	}
	out := []part{new(Transfer), new(Disposition), new(Flow)}
	buf := make([]byte, 0, 256)
	for i := range in {
		n := testing.AllocsPerRun(100, func() {
			r := codec.NewReader(in[i])
			_, fields := r.Composite()
			switch p := out[i].(type) { // through the interface fields would escape
			case *Transfer:
				p.Decode(&fields)
			case *Disposition:
				p.Decode(&fields)
			case *Flow:
				p.Decode(&fields)
			}
			buf = out[i].Append(buf[:0])
		})
		if n > 0 {
			t.Errorf("%T: %v allocations", out[i], n)
		}
	}
}

// FuzzPerformative decodes anything; what can be decoded must mean the same after
// a round trip.
func FuzzPerformative(f *testing.F) {
	for _, c := range parts() {
		f.Add(c.part.Append(nil))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := codec.NewReader(in)
		code, fields := r.Composite()
		p := newPart(Code(code))
		if r.Err() != nil || p == nil {
			return
		}
		if p.Decode(&fields); fields.Err() != nil {
			return // rejecting is fine, panicking is not
		}
		once := p.Append(nil)
		r = codec.NewReader(once)
		_, fields = r.Composite()
		again := newPart(Code(code))
		if again.Decode(&fields); fields.Err() != nil {
			t.Fatalf("% x became % x, which fails with %v", in, once, fields.Err())
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("% x became % x, then % x", in, once, twice)
		}
	})
}

func newPart(c Code) part {
	for _, p := range parts() {
		r := codec.NewReader(p.part.Append(nil))
		if code, _ := r.Composite(); Code(code) == c {
			return reflect.New(reflect.TypeOf(p.part).Elem()).Interface().(part)
		}
	}
	return nil
}

// The AMQP of the SDKs for Python finds a field by its place, and the payload of a
// transfer behind its eleventh field.
func TestAllFieldsAreWritten(t *testing.T) {
	for _, c := range []struct {
		part   part
		fields int
	}{
		{&Open{}, 10}, {&Begin{}, 8}, {&Attach{}, 14}, {&Flow{}, 11}, {&Transfer{}, 11}, {&Disposition{}, 6},
		{&Detach{}, 3}, {&End{}, 1}, {&Close{}, 1}, {&Error{}, 3},
	} {
		r := codec.NewReader(c.part.Append(nil))
		if _, fields := r.Composite(); fields.Left() != c.fields {
			t.Errorf("%T has %d fields, want %d", c.part, fields.Left(), c.fields)
		}
	}
}
