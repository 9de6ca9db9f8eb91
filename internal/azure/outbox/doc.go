// SPDX-License-Identifier: Apache-2.0

// Package outbox brings what a connection has asked the broker for back into the
// connection's context, and counts the memory of what waits for it.
//
// A delivery of the peer is charged to an account before it is taken over ([Unsynced]).
// The broker answers when the delivery is durable, on a goroutine of its own; the answer
// is an [Event] in a [Box], which hands all that have come together to their handlers in
// one pass of the connection. The charge goes with the event and is given back at the
// end of the pass, also if the connection is over by then.
//
//	Reserve ──► Transfer ──► Take ──► broker ──► Post ──► pass: Handle, give back
//	charge                charge              event
package outbox
