// SPDX-License-Identifier: Apache-2.0

package endpoint

import "github.com/triagemq/triagemq/internal/amqp/frame"

// App is what a personality implements: the meaning behind one connection. The
// endpoint calls it in the connection's context, one call at a time, and it may
// call back into the [Link] values it was given from inside any of these calls.
// From any other goroutine it goes through [Conn.Do].
//
// An App must not block: while it does, nothing of its connection moves.
type App interface {
	// Mechanisms lists the SASL mechanisms on offer, best first.
	Mechanisms() []string

	// Login checks the response of a SASL mechanism. A peer that skips SASL
	// logs in as ANONYMOUS with no response. A non-nil error turns the peer
	// away; its text stays here.
	Login(mechanism string, response []byte) error

	// Opened hands over the peer's open. A non-nil error closes the connection
	// with it.
	Opened(open *frame.Open) error

	// Attach asks for a new link. The App answers with Accept or Refuse, now or
	// later; until then the peer cannot use the link.
	Attach(l *Link)

	// Reserve asks whether the App has space for a whole delivery on l, before it is
	// handed over. If not, the peer is paused: nothing more that it
	// sends is looked at until [Conn.Resume], and then the App is asked about the
	// same delivery again. Space that was reserved and is not followed by Transfer is
	// followed by Detached: the peer broke a rule, or left.
	Reserve(l *Link, d Arriving) bool

	// Transfer hands over a whole delivery on a link on which we receive. The
	// App answers each with exactly one Settle, now or later, also when the
	// delivery arrived settled: that frees the memory for the next one. The
	// Incoming and its bytes are valid until Transfer returns.
	Transfer(l *Link, in *Incoming)

	// Credit says that a link on which we send may have become usable, or that
	// its peer asks to drain it: see Link.Credit and Link.Draining.
	Credit(l *Link)

	// Disposition tells what the peer says about deliveries we sent on l. When
	// o.Settled is false the peer waits for SettleOut of each. The Outcome and
	// its bytes are valid until Disposition returns.
	Disposition(l *Link, o *Outcome)

	// Detached says that l is gone, and why; nil when it was detached without an
	// error, or the peer ended its session or the connection. It is called exactly
	// once for each link passed to Attach, no matter who ended it: the peer, the
	// endpoint, or the App itself with Refuse or Detach; then it comes when the
	// call of the App that is running has returned. It is the last call about l,
	// and the one place to clean up after it.
	Detached(l *Link, err error)

	// Closed is the last call of all, after Detached for every link; nil when
	// the peer closed without an error.
	Closed(err error)
}

// Tracker is an App that learns how far the deliveries it sent have come: what was
// never handed to the transport nobody has got.
type Tracker interface {
	App

	// Sent says that the transport has taken all of a delivery that was sent
	// settled. It must not call back into the endpoint.
	Sent(l *Link, ref uint64)

	// Unsent says that the transport has not taken a delivery that Link.Send
	// took, or not to its end, and never will. It comes before Detached of the
	// link, also from inside the App's own Link.Detach; for what was written out
	// when the transport broke, after Closed and before Conn.Serve returns. A peer
	// may have settled what it has not got: then Disposition came before. It must
	// not call back into the endpoint.
	Unsent(l *Link, ref uint64)
}

// Delivery names a delivery we received, in a form that outlives the call that
// reported it. It is what Link.Settle takes.
type Delivery struct {
	ID      uint32
	Settled bool // the sender wants no answer
}

// Incoming is a delivery from the peer, reassembled.
type Incoming struct {
	Delivery
	Tag     []byte
	Format  uint32      // message-format, 0 for a plain AMQP message
	State   frame.State // what the sender says of it, such as a transaction
	Payload []byte      // the encoded sections
}

// Outgoing is a delivery to the peer. Its slices are copied by Send.
type Outgoing struct {
	Tag     []byte // at most 32 bytes, never empty
	Format  uint32
	Settled bool
	Payload []byte

	// Ref and Value come back with the peer's disposition; the App chooses what
	// they mean.
	Ref   uint64
	Value any
}

// Sent is a delivery we sent, as it appears in an Outcome.
type Sent struct {
	ID    uint32
	Ref   uint64
	Value any
}

// Outcome is one disposition of the peer about deliveries of one link, oldest
// first.
type Outcome struct {
	State      frame.State
	Settled    bool // the peer has forgotten the deliveries; nothing to answer
	Deliveries []Sent
}

// Accept says how a link is accepted. The zero value echoes what the peer asked
// for, which is what most links want.
type Accept struct {
	Source *frame.Source // instead of the peer's
	Target *frame.Target // instead of the peer's

	// MaxMessageSize bounds one delivery. Zero takes Config.MaxMessageSize on a
	// link on which we receive, and says nothing on one on which we send.
	MaxMessageSize uint64

	// Credit is the window of a link on which we receive: at most so many
	// deliveries are granted or wait for their Settle. Credit is topped up when
	// half of it is used. Zero leaves it to Grant.
	Credit uint32

	Properties          []byte   // an encoded map
	OfferedCapabilities []string // of those the peer desires
}
