// SPDX-License-Identifier: Apache-2.0

// Package broker has the operations of a broker on entities and messages: everything that
// a protocol offers to clients is a method of Broker.
//
// # Promise
//
// An entity that Create returned is durable; so is a message whose Send called
// back without an error, and a disposition whose Settle did. A message published to a
// topic is in all of its matching subscriptions or in none.
//
// A delivery that a Sink got and cannot pass on is returned with Return: its delivery
// count is unchanged, and one that was received and deleted is stored again in its old
// position.
//
// # Where entities are stored
//
// A queue is in the shard that the hash of its name picks; a topic and all its
// subscriptions are in one shard together, which makes publishing atomic. A definition is
// stored as the shard's opaque meta bytes, in JSON. What a sender needs of it is compiled
// once, when it changes, and read through an atomic pointer: no lock is taken to send or
// to receive, except for requests and replies.
//
// # Forwarders
//
// Forwarding, forwarded dead letters, and messages that a topic has to store first
// (scheduled ones, and all of a topic with duplicate detection) are moved by the broker as
// a consumer of its own queues. Within one shard the move is one group of records; between
// shards a crash may leave a copy in both, never none. If a target accepts nothing at
// present, because it is paused, disabled or full, the messages wait, in order; a message
// that can never be forwarded becomes a transfer dead letter. Hops are counted through
// topics and dead letters.
//
// See package forward.
//
// # Policies
//
// A queue or subscription may have a policy. It is compiled into the definition,
// classifies each message as it is sent, and determines the order of the queue. The shard
// creates a monitor from it, which rejects arrivals by the policy and measures the others;
// see package monitor. A changed policy applies to the next message at once; a job
// reclassifies the stored messages in chunks. The definition has the revision by which
// that was last done, so that a restart continues it.
//
// Measurements are stored in the journal at intervals and at a stop. Queues without events
// are not measured.
//
// # Requests and replies
//
// The broker remembers a delivered message that asks for a reply, so that the reply, which
// any client with the same key may send, inherits its priority. What a reply inherits is
// written into it as annotations before it is stored. From then on the message itself has
// everything that classifying, forwarding and explaining need, also after a restart.
//
// # Concurrency
//
// All methods may be called from any goroutine. Changes of entities are made one at a
// time. Send, Settle, SetDeliveryLimit and Drain never block. Run owns the jobs:
// forwarding, reclassification, idle deletion, alerts and measurement.
//
// # Not here
//
// Rights are checked by the packages that speak to clients; see package access.
package broker
