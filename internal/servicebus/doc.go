// SPDX-License-Identifier: Apache-2.0

// Package servicebus is the Service Bus personality: what links to queues, topics and
// subscriptions mean to the clients of Azure Service Bus, and to plain AMQP 1.0
// clients, which get the same without the vendor's extras. It depends on package azure,
// which has the connection, its rights and its requests.
//
// # Promise
//
// An unmodified Service Bus client finds what it expects byte for byte: types of
// annotations, spelling of keys, error conditions and texts. Where a client would
// break on something else, the comment at that line names the client.
//
// A receiver over several queues needs the right to each of them. A session belongs to
// the receiver that holds its lock: requests about it are served for that link alone.
//
// A disposition to a sender says what the broker said, after it was durable.
//
// Receivers and deliveries on their way are charged to the connection's account.
// Prefetch is bounded in bytes: however much credit the links of a connection have, a
// few megabytes are on their way to it that it has not read.
//
// What was never handed to the transport goes back to its queue at once and
// uncounted, whatever ends the link, also if it was received and deleted.
//
// # Files
//
// personality.go says which entities are ours and what a connection has of them.
// sender.go has links on which a peer sends. receiver.go is one on which
// it receives: session.go reads the session that it asks for, linkoptions.go the options of
// our own clients, set.go has several queues as one. loader.go turns deliveries into
// bytes, departures.go keeps track of those that have not left, locktable.go and
// settle.go are about what the peer decides, recall.go asks for messages back. Package
// management has the operations.
//
// # Concurrency
//
// All state belongs to the connection's context. Two kinds of goroutine help: one that
// reads bodies for deliveries, and one for each receiver that waits for a session.
package servicebus
