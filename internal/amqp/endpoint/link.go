// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"slices"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// linkState is how far a link has come. Only attached links carry anything.
type linkState uint8

const (
	attachPending linkState = iota // the App has not answered the attach
	attached                       // both ends are
	detaching                      // we detached; the peer has not answered
	gone
)

// Link is our end of a link. Its methods are valid only in the connection's
// context: inside a call of the App, or inside [Conn.Do]. On a link that is gone
// they do nothing, so that an answer which comes too late is no special case.
type Link struct {
	// Value is the App's own; the endpoint never looks at it.
	Value any

	session  *Session
	remote   *frame.Attach
	handle   uint32
	state    linkState
	offered  bool  // the App was asked for it
	cost     int64 // that the link is charged with
	unpaid   bool  // cost was charged although there was no space
	reported bool  // the App knows, or is about to be told, that it is gone

	count   uint32 // delivery-count: deliveries begun, in either direction
	credit  uint32 // deliveries that may follow
	flowDue bool   // in Session.flows

	// As receiver.
	window     uint32 // what credit and unsettled are kept at; 0 for Grant
	unsettled  uint32 // deliveries the App has not settled
	maxMessage uint64
	receiving  bool     // between the first and the last transfer of a delivery
	head       Incoming // of that delivery
	body       []byte   // what came of it

	// As sender.
	draining bool
	// drainAnswer, if it is set, has each grant of credit drained, and is sent as the
	// properties of the flow that ends it.
	drainAnswer []byte
	drained     bool       // DrainDone waits for what is queued
	queued      uint32     // deliveries in Session.queue or parked that have no id yet
	parked      []*waiting // of queued: those the peer took the credit for back
	out         uint32     // deliveries in Session.sent
	blocked     bool       // in Machine.blocked
	waits       bool       // Wait said so
}

// Name returns the link's name. Names are unique per session and role.
func (l *Link) Name() string { return l.remote.Name }

// Role returns our role: Receiver on a link the peer sends on.
func (l *Link) Role() frame.Role { return !l.remote.Role }

// Remote returns the attach as the peer sent it; it does not change and stays
// valid with the link.
func (l *Link) Remote() *frame.Attach { return l.remote }

// Session returns the session the link lives in.
func (l *Link) Session() *Session { return l.session }

// Attached reports whether the link was accepted and is still there.
func (l *Link) Attached() bool { return l.state == attached && l.session.m.phase != done }

// Address returns the address of the node on our side: the source of a link on
// which we send, the target of one on which we receive. It is empty for a
// coordinator, for a dynamic node and for the anonymous terminus.
func (l *Link) Address() string {
	switch {
	case l.Role() == frame.Sender && l.remote.Source != nil:
		return l.remote.Source.Address
	case l.Role() == frame.Receiver && l.remote.Target != nil:
		return l.remote.Target.Address
	}
	return ""
}

// Grant sets the credit of a link on which we receive, instead of the window
// that Accept.Credit keeps up by itself.
func (l *Link) Grant(credit uint32) {
	if !l.Attached() || l.Role() != frame.Receiver {
		return
	}
	l.window, l.credit = 0, credit
	l.scheduleFlow()
}

// SetWindow changes the window that Accept.Credit keeps up. A narrower one takes
// effect as what was granted is used.
func (l *Link) SetWindow(n uint32) {
	if l.Attached() && l.window > 0 {
		l.window = n
		l.topUp()
	}
}

// Credit returns how many deliveries Send would take now on a link on which we
// send: at most Config.MaxCredit, and zero while the peer is too slow to read
// what it was sent already. When it rises from zero the App's Credit is called.
func (l *Link) Credit() uint32 {
	if !l.Attached() || l.Role() != frame.Sender || l.credit <= l.queued {
		return 0
	}
	m := l.session.m
	if len(l.session.queue) > 0 || m.congested() {
		l.blockLink()
		return 0
	}
	n := min(l.credit-l.queued, m.cfg.MaxCredit)
	if m.mem.short {
		n = 1
	}
	return l.affordable(n)
}

// CreditWaits reports whether the peer has granted credit that Credit does not return,
// because so much waits to be written to the peer already. The App's Credit is called when
// that has changed. It is false if the memory of the connection is used up: that may last
// until the peer settles something, which it may do only after an answer.
func (l *Link) CreditWaits() bool {
	return l.Granted() > l.queued && !l.session.m.mem.full && l.Wait()
}

// Wait reports whether the App should keep what it has for a link on which we send,
// because so much waits to be written to the peer already. The App's Credit is called
// when that has changed, also if the peer grants no credit.
func (l *Link) Wait() bool {
	if !l.Attached() || len(l.session.queue) == 0 && !l.session.m.congested() {
		return false
	}
	l.waits = true
	l.blockLink()
	return true
}

// WaitForWindow is Wait for the window of the session alone, and not for what the peer is
// slow to read.
func (l *Link) WaitForWindow() bool {
	if !l.Attached() || len(l.session.queue) == 0 {
		return false
	}
	l.waits = true
	l.blockLink()
	return true
}

// Granted returns how many deliveries may follow: on a link on which we receive what
// the peer was granted, on one on which we send what it has granted.
func (l *Link) Granted() uint32 {
	if !l.Attached() {
		return 0
	}
	return l.credit
}

// blockLink has the App called when the link may have become usable.
func (l *Link) blockLink() {
	if l.blocked {
		return
	}
	m := l.session.m
	if len(m.blocked) >= 2*m.links+fewStarved {
		// Links that are gone are not kept for congestion that may never end.
		m.blocked = slices.DeleteFunc(m.blocked, func(l *Link) bool { return l.state == gone })
	}
	l.blocked = true
	m.blocked = append(m.blocked, l)
}

// fewStarved is how many links may be blocked before those are looked for that are gone.
const fewStarved = 16

// Draining reports whether the peer asked us to use up its credit now or give
// it up with DrainDone.
func (l *Link) Draining() bool { return l.Attached() && l.draining }

// leaving returns how many deliveries wait for nothing but the session's window.
func (l *Link) leaving() uint32 { return l.queued - uint32(len(l.parked)) }

// DrainDone gives up the credit that is left and tells the peer, after what was
// sent before. It does nothing when the peer did not ask.
func (l *Link) DrainDone() {
	if !l.Draining() {
		return
	}
	if l.drained = l.leaving() > 0; l.drained {
		return // when the last of them has left
	}
	if l.drainAnswer == nil {
		l.count += l.credit // else the peer did not ask, and keeps its count
	}
	l.credit = 0
	l.sendFlowWith(l.drainAnswer)
	l.draining = false
}

// DrainEach has every grant of credit drained as if the peer had asked for it. The flow
// that ends a drain then has these properties, an encoded map, and leaves the
// delivery-count where it is. A client whose library cannot grant and drain in one flow
// gets so in one round trip what there is.
func (l *Link) DrainEach(properties []byte) { l.drainAnswer = properties }
