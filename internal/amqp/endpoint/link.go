// SPDX-License-Identifier: Apache-2.0

package endpoint

import "github.com/triagemq/triagemq/internal/amqp/frame"

// Link is our end of a link. Its methods are valid only in the connection's
// context: inside a call of the App, or inside [Conn.Do]. On a link that is gone
// they do nothing, so that an answer which comes too late is no special case.
type Link struct {
	// Value is the App's own; the endpoint never looks at it.
	Value any

	session *Session
	remote  *frame.Attach
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

// Address returns the address of the node on our side: the source of a link on
// which we send, the target of one on which we receive. It is empty for a
// coordinator, for a dynamic node and for the anonymous terminus.
func (l *Link) Address() string { return "" }

// Accept attaches our end of the link.
func (l *Link) Accept(a Accept) {}

// Refuse turns the peer's attach down with err. An err that is no [Error] is
// reported without its text.
func (l *Link) Refuse(err error) {}

// Detach closes the link with err, or without a reason when err is nil.
func (l *Link) Detach(err error) {}

// Attached reports whether the link was accepted and is still there.
func (l *Link) Attached() bool { return false }

// Grant sets the credit of a link on which we receive, instead of the window
// that Accept.Credit keeps up by itself.
func (l *Link) Grant(credit uint32) {}

// Settle answers a delivery we received. Consecutive deliveries with the same
// outcome leave as one disposition.
func (l *Link) Settle(d Delivery, s frame.State) {}

// Credit returns how many deliveries Send would take now on a link on which we
// send: at most Config.MaxCredit, and zero while the peer is too slow to read
// what it was sent already. When it rises from zero the App's Credit is called.
func (l *Link) Credit() uint32 { return 0 }

// Draining reports whether the peer asked us to use up its credit now or give
// it up with DrainDone.
func (l *Link) Draining() bool { return false }

// DrainDone gives up the credit that is left and tells the peer, after what was
// sent before. It does nothing when the peer did not ask.
func (l *Link) DrainDone() {}

// Send sends a delivery. It fails with [ErrNoCredit] or [ErrDetached], and then
// the delivery did not happen; the App has to put it back.
func (l *Link) Send(o Outgoing) error { return nil }

// SettleOut settles a delivery we sent and tells the peer its final state.
// Consecutive deliveries with the same state leave as one disposition.
func (l *Link) SettleOut(id uint32, s frame.State) {}
