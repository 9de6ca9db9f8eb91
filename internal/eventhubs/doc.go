// SPDX-License-Identifier: Apache-2.0

// Package eventhubs is the Event Hubs personality: what links to event hubs mean to the
// clients of Azure Event Hubs, and to plain AMQP 1.0 clients. It depends on package azure,
// which has the connection, its rights and its requests.
//
// # Promise
//
// An unmodified Event Hubs client finds what it expects byte for byte: types of
// annotations, spelling of keys, error conditions and texts. Where a client would break on
// something else, the comment at that line names the client.
//
// A disposition to a sender says what the broker said, after it was durable. A batch is
// stored whole, in one partition, as it came; every event in it was checked.
//
// A receiver gets the events of its partition in order and without a gap, from the start
// that its filter names; only retention and damage make gaps. Deliveries are settled: what
// a client has processed is its own business.
//
// # Addresses
//
//	hub                                    senders; each batch to the partition of its key, or to the next one
//	hub/Partitions/n                       senders
//	hub/Publishers/p                       senders; p is the key
//	hub/ConsumerGroups/g/Partitions/n      receivers
//	hub/ConsumerGroups/g                   members of a group, which receive what they are assigned
//	$management, hub/$management           requests about a hub, its partitions and groups
//
// # Memory
//
// What a receiver reads is charged to its connection before it is read, and only while its
// peer has granted credit. A receiver at the end of its partition holds nothing. What its
// peer does not take for a second is given up, and read again later.
//
//	journal ──► Next ──► encode ──► outbox ──► receiver.backlog ──► endpoint
//	            └──────── about connectionAhead for all links ─────┘
//
// # Files
//
// personality.go says which entities are ours and what a connection has of them. sender.go
// is a link on which a peer sends, producer.go one that is idempotent. receiver.go is a
// link on which it receives, reading.go the goroutine that reads for it, chunk.go what it
// makes, drain.go the answer to a drain. start.go and options.go read what an attach asks
// for. member.go is a link of a member of a group. management.go has the operation READ,
// groups.go those of groups, grouparguments.go what they ask for, errors.go the conditions of
// errors, buffer.go buffers to use again.
//
// # Concurrency
//
// All state belongs to the connection's context. Each receiver has one goroutine, which
// opens its reader, waits for events and encodes them. Each member has one, which joins and
// tells the broker when the link is gone.
package eventhubs
