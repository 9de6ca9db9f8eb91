// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// trackingApp remembers how far its deliveries have come.
type trackingApp struct {
	nullApp
	sent, unsent []uint64
}

func (a *trackingApp) Sent(_ *Link, ref uint64)   { a.sent = append(a.sent, ref) }
func (a *trackingApp) Unsent(_ *Link, ref uint64) { a.unsent = append(a.unsent, ref) }
func (a *trackingApp) Credit(*Link)               {}

// trackedPeer is a peer with a link for us to send on, with credit, and a window
// of so many transfers.
func trackedPeer(t testing.TB, window uint32) (*Machine, *trackingApp) {
	t.Helper()
	app := new(trackingApp)
	m := attachedPeer(t, app, Config{})
	flow := &frame.Flow{
		HasNextIncomingID: true, IncomingWindow: window, Handle: 1, HasHandle: true,
		HasDeliveryCount: true, LinkCredit: 100, HasLinkCredit: true,
	}
	if err := m.Feed(time.Unix(0, 0), appendFrame(nil, flow)); err != nil {
		t.Fatal(err)
	}
	m.Take()
	return m, app
}

func (a *trackingApp) send(t testing.TB, settled bool, refs ...uint64) {
	t.Helper()
	for _, ref := range refs {
		if err := a.sender.Send(Outgoing{Tag: []byte{1}, Payload: make([]byte, 100), Settled: settled, Ref: ref}); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *trackingApp) check(t *testing.T, when string, sent, unsent []uint64) {
	t.Helper()
	if !slices.Equal(a.sent, sent) || !slices.Equal(a.unsent, unsent) {
		t.Fatalf("%s: sent %v and unsent %v, want %v and %v", when, a.sent, a.unsent, sent, unsent)
	}
}

// The App learns of every delivery that the transport did not take.
func TestUnsentDeliveriesAreTold(t *testing.T) {
	t.Run("transport breaks", func(t *testing.T) {
		m, app := trackedPeer(t, 100)
		app.send(t, true, 1, 2)
		m.Take()
		app.check(t, "being written", nil, nil)
		app.send(t, true, 3)
		app.send(t, false, 4)
		taken := len(m.Take()) // so the one before was written
		app.check(t, "written", []uint64{1, 2}, nil)
		app.send(t, true, 5)
		m.Unwritten(taken / 2) // delivery 3 is out, of 4 a part
		app.check(t, "broken", []uint64{1, 2, 3}, []uint64{4, 5})
	})
	t.Run("peer detaches", func(t *testing.T) {
		m, app := trackedPeer(t, 2)
		app.send(t, true, 1, 2, 3)
		app.send(t, false, 4)
		if err := m.Feed(time.Unix(0, 0), appendFrame(nil, &frame.Detach{Handle: 1, Closed: true})); err != nil {
			t.Fatal(err)
		}
		app.check(t, "detached", nil, []uint64{3, 4}) // which wait for the window
		m.Take()
		m.Take()
		app.check(t, "written", []uint64{1, 2}, []uint64{3, 4})
	})
	t.Run("we detach in the midst of a delivery", func(t *testing.T) {
		m, app := trackedPeer(t, 1)
		if err := app.sender.Send(Outgoing{Tag: []byte{1}, Payload: make([]byte, 100_000), Settled: true, Ref: 1}); err != nil {
			t.Fatal(err)
		}
		app.sender.Detach(nil)
		m.Take()
		m.Take()
		app.check(t, "detached", nil, []uint64{1})
	})
	t.Run("connection closes", func(t *testing.T) {
		m, app := trackedPeer(t, 1)
		app.send(t, true, 1, 2)
		m.Close(Errorf(CondConnectionForced, "enough"))
		app.check(t, "closed", nil, []uint64{2})
		for len(m.Take()) > 0 {
		}
		m.Unwritten(0)
		app.check(t, "written", []uint64{1}, []uint64{2})
	})
}

// BenchmarkTransferOutTracked is BenchmarkTransferOut with an App that wants to know.
func BenchmarkTransferOutTracked(b *testing.B) {
	transferOut(b, func(n *nullApp) App { return &tracker{nullApp: n} })
}

// tracker does nothing with what it learns.
type tracker struct{ *nullApp }

func (*tracker) Sent(*Link, uint64)   {}
func (*tracker) Unsent(*Link, uint64) {}
