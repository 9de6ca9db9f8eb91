// SPDX-License-Identifier: Apache-2.0

// Package client connects Go programs to a TriageMQ broker, or to any broker that
// speaks AMQP 1.0 the way Azure Service Bus does.
//
// [Dial] makes a [Client], [New] one that connects when it is first used. A [Sender]
// sends, a [Receiver] receives and settles, a [Session] does so for one session, and
// [Client.Request] asks and waits for the answer. The Examples show each in a few
// lines.
//
// # Promise
//
// Send returns nil only after the broker said that the message is durable, and
// Complete only after it said the same of the settlement. A lost connection is
// made again, and what was in flight is done again: at least once, never less.
// Messages get an ID before they are first sent, so that a queue with duplicate
// detection drops the second copy.
//
// A receiver asks the broker for no more messages than its caller asked it for,
// and hands credit back before Receive returns: what is most urgent is decided
// when a message is delivered, not when it was fetched. With
// [ReceiverOptions].Prefetch it has some that were not started, and releases them
// when the broker has a better one.
//
// # Assumptions
//
// Errors that doing it again cannot cure come back at once, as one of the Err
// variables. Everything else counts as an outage and is waited out, for
// [Options.RetryTimeout] at most, or until the caller's context ends. Close takes five
// seconds at most; Shutdown as long as its context allows.
//
// # Concurrency
//
// Everything is safe for concurrent use; calls of Receive on one receiver take
// turns. Each sender and receiver has an AMQP session of its own. A client owns
// one goroutine per connection, one that refreshes tokens, and one for each node
// that it waits for answers of; Close waits for all of them.
//
// # Not here
//
// Running a handler for each message, with retries, renewal and pools, is package
// worker. Creating queues and topics, and all else about them, is package client/admin.
package client
