// SPDX-License-Identifier: Apache-2.0

// Package catalog has the entities of a namespace: names, definitions, compiled policies
// and rules, and the queues that a message is sent to.
//
// An entity (entity.go) has a definition that is immutable. A change creates a new one
// (queues.go, topics.go, rules.go, policies.go, hubs.go), which is durable in the Store (store.go)
// before it is visible. What a sender needs is compiled once, when the definition
// changes, and read through an atomic pointer: the rules of a topic (routes.go), the
// classifier of a policy. Send turns a batch into one operation of a shard (send.go).
// recover.go brings the entities back at a start.
//
// # Invariants
//
//  1. An entity that Create returned is durable.
//  2. A topic and its subscriptions are in one shard. A message that is published is in
//     all of the matching subscriptions or in none.
//  3. The shard of an entity is chosen when it is created, by the hash of its name, and
//     never computed again: Entity.Shard counts.
//  4. A definition is not visible before it is durable.
//  5. The log of an event hub (Logs) exists before the definition that names it is durable,
//     and until that definition is removed.
//
// # Concurrency
//
// All methods may be called from any goroutine. Changes are made one at a time. Settle never
// blocks, nor does Send, unless its caller waits for a processor when rules or conditions are
// expensive (effort.go). On the goroutine of a shard nothing expensive is evaluated.
//
// # Not here
//
// Checks of a definition by itself: package validate. Receivers, management and
// explanations: package broker.
package catalog
