// SPDX-License-Identifier: Apache-2.0

// Package azure is what the messaging services of Azure have in common on the wire:
// the connection of a client and what it may do, before anything is said about queues or
// event hubs. What an entity does is up to a [Personality]; package servicebus is one.
//
// # Promise
//
// No link is attached and no request served without a grant that covers it; see
// package access. A grant is of a key and of an entity, not of their names. It ends
// when its time is over, when the key is changed or removed, and when the entity is
// deleted; the links that depend on it end with it.
//
// What a connection makes the process hold is charged before it is taken: to the
// account of its key, once it has one, and until then to that of all connections that
// have not authenticated. The endpoint charges what belongs to the protocol; here are
// requests, replies that wait for credit, messages in dynamic nodes and tokens. A peer
// whose account is full is refused. Messages that are not durable yet have accounts
// of their own, for each connection and key; a peer for which there is none left is not read from.
//
// When [Service.Serve] returns, nothing of the connection is left.
//
// # Who serves a link
//
//	$cbs                       put-token requests: this package
//	$temporary/<id>            a node made for a dynamic source; lives with its link
//	(no address)               the anonymous terminus: each message names its entity
//	<entity>/$management       requests about an entity, run here; the operations are
//	                           those of the entity's personality
//	$management                requests about the namespace, or about an entity that
//	                           the request names
//	anything else              the personality that has the entity
//
// # Files
//
// service.go and registry.go have the service and the list of its connections; conn.go
// the state of one and how it finds the node of a link. personality.go is the seam.
// login.go, cbs.go and grants.go say who the peer is and what it may do, watch.go what
// happens when that changes. rpc.go has request and reply links, requestpool.go runs
// requests, arguments.go reads them. window.go says how much credit a sender has.
// anonymoussender.go and dynamicnode.go are the anonymous terminus
// and dynamic nodes. Package wire reads addresses and writes replies, package outbox
// brings results from the broker's goroutines back, and package condition has the table
// of errors.
//
// # Concurrency
//
// All state of a connection belongs to the connection's context, as package
// endpoint defines it. Results from elsewhere come in through the connection's
// outbox, many at a time: one pass of the endpoint writes the answers to a whole
// journal batch. Goroutines that help a connection are started with [Conn.Go], which
// Serve waits for: a few run management requests, others are the personalities'.
//
// # Not here
//
// Protocol state (package endpoint), what is stored (package broker), who has
// which key (package access). Transactions: a coordinator is refused.
package azure
