// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// nullApp accepts everything and keeps nothing.
type nullApp struct {
	sender *Link
	tag    [16]byte
	body   []byte
}

func (a *nullApp) Mechanisms() []string       { return []string{"ANONYMOUS"} }
func (a *nullApp) Login(string, []byte) error { return nil }
func (a *nullApp) Opened(*frame.Open) error   { return nil }
func (a *nullApp) Closed(error)               {}
func (a *nullApp) Detached(*Link, error)      {}

func (a *nullApp) Attach(l *Link) {
	if l.Role() == frame.Sender {
		a.sender = l
	}
	l.Accept(Accept{Credit: 1000})
}

func (a *nullApp) Reserve(*Link, Arriving) bool   { return true }
func (a *nullApp) Transfer(l *Link, in *Incoming) { l.Settle(in.Delivery, frame.Accepted()) }

func (a *nullApp) Credit(l *Link) {
	for n := l.Credit(); n > 0; n-- {
		l.Send(Outgoing{Tag: a.tag[:], Payload: a.body, Ref: uint64(n)})
	}
}

func (a *nullApp) Disposition(l *Link, o *Outcome) {
	for _, d := range o.Deliveries {
		l.SettleOut(d.ID, frame.Accepted())
	}
}

// BenchmarkTransferIn measures a delivery of 256 bytes in and its disposition
// out, in reads of a hundred.
func BenchmarkTransferIn(b *testing.B) {
	m := attachedPeer(b, new(nullApp), Config{})
	const batch = 100
	var in []byte
	for i := range uint32(batch) {
		t := &frame.Transfer{HasDeliveryID: true, DeliveryID: i, DeliveryTag: make([]byte, 16)}
		in = append(in, encode(0, 0, t, make([]byte, 256))...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Feed(time.Unix(0, 0), in); err != nil {
			b.Fatal(err)
		}
		m.Take()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/transfer")
}

// BenchmarkTransferOut measures a delivery of 256 bytes out, the peer's
// disposition in and ours out, with credit for a hundred at a time.
func BenchmarkTransferOut(b *testing.B) { transferOut(b, func(n *nullApp) App { return n }) }

func transferOut(b *testing.B, app func(*nullApp) App) {
	m := attachedPeer(b, app(&nullApp{body: make([]byte, 256)}), Config{})
	const batch = 100
	var next uint32
	var in []byte
	flow := &frame.Flow{
		HasNextIncomingID: true, IncomingWindow: 5000, Handle: 1, HasHandle: true,
		HasDeliveryCount: true, LinkCredit: batch, HasLinkCredit: true,
	}
	d := &frame.Disposition{Role: frame.Receiver, State: frame.Accepted()}
	b.ReportAllocs()
	for b.Loop() {
		flow.NextIncomingID, flow.DeliveryCount = next, next
		in = appendFrame(in[:0], flow)
		for i := range uint32(batch) {
			d.First, d.Last = next+i, next+i
			in = appendFrame(in, d)
		}
		next += batch
		if err := m.Feed(time.Unix(0, 0), in); err != nil {
			b.Fatal(err)
		}
		m.Take()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/transfer")
}

func appendFrame(dst []byte, p performative) []byte {
	start := len(dst)
	dst = p.Append(frame.AppendHeader(dst, frame.TypeAMQP, 0))
	frame.SetSize(dst[start:], 0)
	return dst
}
