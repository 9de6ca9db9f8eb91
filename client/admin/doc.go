// SPDX-License-Identifier: Apache-2.0

// Package admin manages a TriageMQ broker from Go: queues, topics, subscriptions and their
// rules, policies, keys, counts, the order of what waits, and worker pools.
//
// [New] takes the same address as package client. It speaks the broker's JSON API, which
// is on the port of AMQP; Azure Service Bus has another one.
//
// # Promise
//
// A call returns when the change is durable. It is tried once: only the caller knows
// whether a change may be made twice. What the broker refuses is a [client.Error], which
// unwraps to one of the Err variables of package client.
//
// # Concurrency
//
// A Client is safe for concurrent use, and has no goroutines of its own but those of its
// HTTP connections, which Close ends.
package admin
