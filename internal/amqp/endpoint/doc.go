// SPDX-License-Identifier: Apache-2.0

// Package endpoint is the server side of AMQP 1.0: the protocol state of one peer.
//
// A [Machine] is fed what the peer sends and the time, calls an [App] about what
// that means, and collects what the peer is to be sent. A [Conn] puts a Machine
// on a socket. Personalities implement App and work with [Link].
//
// # Promise
//
// The App sees whole deliveries, links that can be used, and ranges of settled
// deliveries; it never sees a frame out of place. A peer that breaks a rule is
// told the error the specification has for it, at the level that is to blame:
// link, session or connection. Errors of an App reach the peer with their text
// only as an [Error].
//
// A peer is let go in steps when the server stops: see stopState.
//
// What a peer can make us keep is charged to the account of its connection; see
// Memory. A delivery that the App has no space for pauses the peer: it stays where it
// is, and nothing behind it is read.
//
// # Memory
//
//	held for the peer              when there is no space
//	sessions                       the connection is closed
//	links, until they are gone     the link is refused
//	unfinished deliveries          the link is closed
//	answers that it does not read  nothing more that it sends is looked at
//	deliveries not yet written,    links pretend to have no credit; the App is asked to
//	  or not yet settled             wait ([Link.Wait])
//
// A pause has to end by itself, or a peer that could free memory is not read any more:
// so reading stops only for what the peer takes by reading, and for the App's Reserve.
// While memory is short above the connection's account, one delivery leaves at a time.
// A peer that takes nothing for the length of a write timeout is cut off.
//
// Before login ([Config.Unauthenticated]) there are few sessions and links, and frames are
// small.
//
// # Assumptions
//
// Callers of a Machine take turns, and time does not go backwards. An App answers
// each attach once and each delivery once.
//
// # Format
//
// Our choices where AMQP leaves one: a session and a link have the same number in
// both directions; transfer and delivery ids start at 0 and delivery ids have no
// gaps (rhea insists); a flow always has all fields of the session; refusing a
// link is an attach without termini and a detach in one write; a sasl-outcome is
// written alone.
//
// # Concurrency
//
// A Machine has no goroutine. Serve has two: the reader feeds the machine, the
// writer runs what was handed to [Conn.Do], keeps the time and writes. Both take
// the connection's lock to touch the machine, so that "the connection's context"
// is the one that holds it; neither holds it while it reads or writes. Do takes
// another lock, for an append, so that nobody waits for an App.
//
// The App is never called from inside a method of Link: what such a call brings
// about is told when the call that is running has returned. So is the end of a link,
// no matter who ended it: every link that the App was asked for ends with one Detached.
//
// # Invariants
//
//  1. Only an attached link has anything queued, unsettled or unfinished.
//  2. A delivery gets its id when its first transfer is written, not before.
//  3. credit and delivery-count of a link are what the peer knows of; deliveries
//     that wait for the session's window are counted apart, and never more than
//     the credit: if the peer takes credit back, they are parked at the link.
//  4. Once the machine is done nothing is appended to the output.
//
// # Not here
//
// What addresses, messages and tokens mean: the personalities. Resuming links and
// transactions: refused. Listening, TLS and WebSockets: the server.
package endpoint
