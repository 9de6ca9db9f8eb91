// SPDX-License-Identifier: Apache-2.0

// Package broker is the switchboard: entity names, topic rules and fan-out, dead
// letter and forward targets. Its methods are the whole vocabulary of the wire.
//
// # Promise
//
// An entity that Create returned is durable; so is a message whose Send called
// back without an error, and a disposition whose Settle did. A message published to a
// topic is in all of its matching subscriptions or in none.
//
// What was delivered to a Sink and cannot be passed on is given back with Return:
// nothing counts against the message, and one that was taken for good is in its place
// again.
//
// # Where things live
//
// A queue lives in the shard that the hash of its name picks; a topic and all its
// subscriptions live in one shard together, which is what makes publishing
// atomic. A definition is kept as the shard's opaque meta bytes, in JSON. What a
// sender needs of it is compiled once, when it changes, and read through an atomic
// pointer: no lock is taken to send or to receive, but for requests and replies.
//
// # Forwarders
//
// Forwarding, forwarded dead letters, and messages that a topic had to keep for a
// while (scheduled ones, and all of a topic with duplicate detection) are moved on
// by the broker as a consumer of its own queues. Within one shard the move is one
// group of records; between shards a crash may leave a copy in both, never none.
// A target that takes nothing at present, because it is paused, disabled or full,
// is waited for, in order; what can never be forwarded becomes a transfer dead
// letter. Hops are counted through topics and dead letters.
//
// See package forward.
//
// # Policies
//
// A queue or subscription may have a policy: it is compiled into the definition,
// classifies each message as it is sent, and gives the queue machine its order. The
// shard makes a monitor from it, which turns arrivals away as the policy asks and
// measures what becomes of the others; see package monitor. A policy that changes holds for the next
// message at once; what waits is classified anew by a job, in
// chunks, and a definition says by which revision that was last done, so that a
// restart goes on with it.
//
// What was measured is noted in the journal now and then and at a stop. Queues in
// which nothing happens are not looked at.
//
// # Requests and replies
//
// What was handed out and asks for a reply is remembered for a while, so that the
// reply, which any client with the same key may send, is worth as much. What the broker lends it is
// written into the reply as annotations before it is stored. From then on the
// message itself is all that classifying, forwarding and explaining need, and all
// that a restart has to find.
//
// # Concurrency
//
// All methods may be called from any goroutine. Changes of entities are made one
// at a time. Send, Settle, Allow and Drain never block. Run owns the jobs:
// forwarding, reclassification, idle deletion, alerts and measurement.
//
// # Not here
//
// Rights are checked by the packages that speak to clients; see package access.
package broker
