// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"math"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// oneLink is an app that accepts a link.
type oneLink struct {
	endpoint.Tracker
	link *endpoint.Link
}

func (*oneLink) Mechanisms() []string       { return []string{"ANONYMOUS"} }
func (*oneLink) Login(string, []byte) error { return nil }
func (*oneLink) Opened(*frame.Open) error   { return nil }
func (*oneLink) Credit(*endpoint.Link)      {}
func (a *oneLink) Attach(l *endpoint.Link) {
	a.link = l
	l.Accept(endpoint.Accept{})
}

// linkWithCredit returns a link to a peer that has given credit, and whose session window
// is closed: the transport takes nothing.
func linkWithCredit(t *testing.T, credit uint32) *endpoint.Link {
	t.Helper()
	now := time.Unix(1000, 0)
	app := new(oneLink)
	m := endpoint.NewMachine(app, endpoint.Config{}, now)
	feed := func(b []byte) {
		if err := m.Feed(now, b); err != nil {
			t.Fatal(err)
		}
	}
	feed(frame.AppendProtocol(nil, frame.ProtocolAMQP))
	for _, p := range []interface{ Append([]byte) []byte }{
		&frame.Open{ContainerID: "peer", MaxFrameSize: 4096, ChannelMax: math.MaxUint16},
		&frame.Begin{OutgoingWindow: 100, HandleMax: 10},
		&frame.Attach{Name: "replies", Role: frame.Receiver, Source: &frame.Source{Address: "node"}, Target: &frame.Target{Address: "here"}},
		&frame.Flow{HasNextIncomingID: true, OutgoingWindow: 100, HasHandle: true, HasDeliveryCount: true, LinkCredit: credit, HasLinkCredit: true},
	} {
		b := p.Append(frame.AppendHeader(nil, frame.TypeAMQP, 0))
		frame.SetSize(b, 0)
		feed(b)
	}
	if app.link == nil || app.link.Credit() != credit {
		t.Fatal("no link with credit; the test shows nothing")
	}
	return app.link
}

// largeReply adds a reply to those that wait, and returns a way to see whether its payload
// is still in memory.
func largeReply(to *replies) weak.Pointer[byte] {
	payload := make([]byte, 1<<20)
	to.backlog = append(to.backlog, parting{payload: payload, lost: func() {}})
	return weak.Make(&payload[0])
}

// A reply that the link has taken has its bytes there, charged to the peer. The replies
// behind it must not keep another copy that nobody is charged for.
func TestReplyThatHasLeftIsNotKept(t *testing.T) {
	to := &replies{link: linkWithCredit(t, 1), left: func(int64) {}}
	taken, waits := largeReply(to), largeReply(to)
	to.Credit()
	if len(to.backlog) != 1 || len(to.leaving) != 1 {
		t.Fatalf("%d replies wait and %d are leaving, want one each", len(to.backlog), len(to.leaving))
	}
	runtime.GC()
	if taken.Value() != nil {
		t.Error("the payload of the reply that has left is still in memory")
	}
	if waits.Value() == nil {
		t.Error("the payload of the reply that waits is gone; the test shows nothing")
	}
	runtime.KeepAlive(to)
}
