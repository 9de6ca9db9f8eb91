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
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

// oneLink is an app that accepts a link.
type oneLink struct {
	endpoint.Tracker
	link *endpoint.Link
}

func (*oneLink) Mechanisms() []string          { return []string{"ANONYMOUS"} }
func (*oneLink) Login(string, []byte) error    { return nil }
func (*oneLink) Opened(*frame.Open) error      { return nil }
func (*oneLink) Credit(*endpoint.Link)         {}
func (*oneLink) Unsent(*endpoint.Link, uint64) {}
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

// A peer that closes the window of its session, and gives a link any credit, does not have
// the session keep all replies: each flow of the peer would look at them. They are counted
// as those that wait for credit.
func TestFewRepliesWaitForAWindow(t *testing.T) {
	to := &replies{link: linkWithCredit(t, 2000), c: &Conn{mem: budget.NewCounter(nil)}}
	for range limits.Replies + 1 {
		to.send(parting{payload: []byte("reply")})
	}
	if len(to.backlog) != limits.Replies || !to.link.Attached() {
		t.Fatalf("%d replies wait outside of the session, attached is %t; want %d", len(to.backlog), to.link.Attached(), limits.Replies)
	}
	if to.send(parting{payload: []byte("reply")}); to.link.Attached() {
		t.Error("the link stays with more replies than may wait")
	}
}

// Many links for replies may be there: the right one is found without looking at all.
func TestReplyLinksAreFound(t *testing.T) {
	session := func() *endpoint.Link { return linkWithCredit(t, 2000) }
	one, other := &replies{link: session(), node: "q/$management"}, &replies{link: session(), node: "q/$management"}
	ls := replyLinks{}
	ls.add(one)
	for _, text := range []string{"here", "replies", "anything"} { // its target, its name, the only one
		if got := ls.find(one.node, one.link.Session(), text); got != one {
			t.Errorf("%q: found %p, want %p", text, got, one)
		}
		if got := ls.find(one.node, other.link.Session(), text); got != one {
			t.Errorf("%q in another session: found %p, want %p", text, got, one)
		}
		if got := ls.find("r/$management", one.link.Session(), text); got != nil {
			t.Errorf("%q at another node: found %p", text, got)
		}
	}
	ls.add(other)
	for _, to := range []*replies{one, other} {
		for _, text := range []string{"here", "replies", "anything"} {
			if got := ls.find(to.node, to.link.Session(), text); got != to {
				t.Errorf("%q of two: found %p, want %p", text, got, to)
			}
		}
	}
	ls.remove(one)
	ls.remove(one)
	ls.remove(other)
	if len(ls) != 0 {
		t.Errorf("%d keys are left", len(ls))
	}
}
