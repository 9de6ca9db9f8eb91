// SPDX-License-Identifier: Apache-2.0

// Package servicebus is the Service Bus personality: what links, addresses and
// messages mean to the clients of Azure Service Bus, and to plain AMQP 1.0
// clients, which get the same without the vendor's extras.
//
// # Promise
//
// An unmodified Service Bus client finds what it expects byte for byte: types of
// annotations, spelling of keys, error conditions and texts. Where a client would
// break on something else, the comment at that line names the client.
//
// No link is attached and no request served without a grant that covers it; see
// package access. A grant is of a key and of an entity, not of their names. It ends
// when its time is over, when the key is changed or removed, and when the entity is
// deleted; the links that stand on it end with it. A receiver over several queues
// stands on the right to each of them.
//
// A session belongs to the receiver that holds its lock: requests about it are
// served for that link alone.
//
// A disposition to a sender says what the broker said, after it was durable.
//
// What a connection makes the process hold is charged before it is taken: to the
// account of its key, once it has one, and until then to that of all strangers. The
// endpoint charges what belongs to the protocol; here are receivers, requests, replies
// that wait for credit, messages in temporary nodes, tokens, and deliveries on their
// way. Who has no room is refused. Messages that are not durable yet have an account
// that all connections share; a peer for which there is none is not read from.
//
// Prefetch is bounded in bytes: however much credit the links of a connection have, a
// few megabytes are on their way to it that it has not read.
//
// What was never handed to the transport goes back to its queue at once and
// uncounted, whatever ends the link, also if it was taken for good.
//
// # Addresses
//
//	$cbs                       put-token requests
//	<entity>/$management       requests about an entity
//	$temporary/<id>            a node made for a dynamic source; lives with its link
//	anything else              a queue, topic, subscription or sub-queue
//
// # Concurrency
//
// All state of a connection belongs to the connection's context, as package
// endpoint defines it. Results from elsewhere come in through the connection's
// outbox, many at a time: one pass of the endpoint writes the answers to a whole
// journal batch. Three kinds of goroutine help a connection, all waited for by
// [Service.Serve]: one that reads bodies for deliveries, a few that run
// management requests, and one for each receiver that waits for a session.
//
// # Not here
//
// Protocol state (package endpoint), what is stored (package broker), who has
// which key (package access). Transactions: a coordinator is refused.
package servicebus
