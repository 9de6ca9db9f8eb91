// SPDX-License-Identifier: Apache-2.0

// Package queueserver hosts queues on an engine.
//
// A shard is a number of entities, each of them a few queues (its messages, its dead
// letters), with the consumers attached to them. It turns operations into commands of
// the queue machines, and gives what the machines decide to consumers and observers.
// Package engine, which drives the shard as its host, does the rest: it takes the
// operations from a mailbox, makes the machines' records durable, releases the replies,
// keeps the timer, and writes and replays snapshots.
//
//	broker ── Send, Settle, Do, Attach ──► mailbox ─► engine.Engine
//	                                                      │ Host: Tick, Serve, Release …
//	           Sink, Observer ◄──────────────────────── Shard
//	                                                      │ Enqueue, Take, Complete …
//	                                                      ▼
//	                              entity ─► hostedQueue ─► queue.Queue
//
// # Dispatch
//
// A queue in which something changed is dispatched when the step ends: its consumers
// get messages in turns, each up to its limit. A step dispatches DispatchStep messages at
// most; the rest waits for the next one.
//
//	Take ─────────────────────► held until durable ─► Sink.Deliver
//	ReceiveAndDelete ─► fetching ─► remove ─► held ─► Sink.Deliver
//
// A delivery waits for the records it depends on. A message without failures depends on
// its own arrival alone, so one that was stored long ago does not wait for the sync in
// progress. There are two exceptions. With the first message of a fair key that finishes
// what it started, that it was started must be durable, too. After a release with new
// properties, so must those be: no failure shows that the message has changed.
//
// A granted session, and the end of consumers whose entity was dropped, are replies of the
// engine: both become known when everything written before is durable.
//
// When a consumer is detached, the deliveries that its sink has not got are returned, and
// not counted. The owner of the sink returns with Return what it could not pass on. With
// ReceiveAndDelete a message that no receiver has got is lost only by a crash, or by a
// stop while there is no space for the record that it returned.
//
// # Dead letters
//
// A dead letter keeps the body it had. Its reason is a small body of its own, and the
// two are merged when the message is read.
//
// # Bodies
//
// The engine's goroutine reads no bodies. A body that is not cached is read in the
// background. For a ReceiveAndDelete consumer the message is locked meanwhile. A
// settlement with properties delays the detach of its session. A message whose body
// cannot be read becomes a dead letter; other messages are not affected.
//
// # Memory
//
// A send claims what its messages will take of Options.Stored, before anything is written,
// or is refused with ErrMemory. The end of a step charges what the queues that changed in
// it have really allocated, instead of the claims: locks, dead letters, schedules and
// messages that come back are not refused. A shard takes the account in pieces, so a message
// takes no lock. A queue may take memoryShare times what is free, so that the rest is left
// to others. What messages become may exceed all of it; then Options.Reserve is left to
// queues with few messages.
//
//	claim (send) ──► claimed ─┐
//	touch ──► toWeigh ──► weigh: Queue.Memory ──► weight of the queue ──► budget.Counter ──► account
//
// # Concurrency
//
// The engine's goroutine owns every field of Shard but spare, sinks and lookups. Methods that
// post to the mailbox may be called from anywhere and never block; their callbacks, and
// the methods of sinks and observers, run on the engine's goroutine and must return at
// once. Delivery.Message and Read may wait for the disk.
//
// # Invariants
//
//  1. A consumer's deliveries are released in the order in which they were taken.
//
//  2. What was taken for a consumer is in its fetching or held until it is given to the
//     sink or returned to the queue.
//
//  3. An operation names a consumer by its id. Consumers that have ended are not in
//     Shard.consumers, and operations that name them do nothing.
//
//  4. Between steps, what is counted as used of Options.Stored is what the queues take.
//
// The bytes of the records are described in docs/format/shard-records.md.
//
// # Files
//
//	shard.go, host.go, task.go       a shard, as its owner and as its engine see it
//	entity.go                        entities and their queues
//	record.go                        the shard's own records
//	send.go, settle.go, edit.go      storing and settling messages, with new properties
//	deadletter.go                    dead letters and their reasons
//	consumer.go, acceptsession.go    attached consumers, sessions
//	dispatch.go, receivedelete.go    deliveries to consumers
//	recall.go, return.go             deliveries that come back
//	delivery.go, fetch.go            deliveries, and reading their bodies
//	observer.go, monitor.go          admission and measurement
//	memory.go                        what the queues take in memory, and who is refused
//	ops.go, ops_*.go, errors.go      operations as values
//	reorder.go                       messages that change their order
//	inspect.go, manual.go            for operators, simulators and tests
//
// # Not here
//
// Names, rules and rights are the broker's. Bytes on the wire are the endpoint's. The
// order of messages is the queue's.
package queueserver
