// SPDX-License-Identifier: Apache-2.0

// Package sim runs the whole core in one goroutine from one seed: shards over a
// journal over a disk in memory; clients that send, receive and settle; a wall
// clock that is set forward and back; and disks that are slow, full, failing, or
// lose power.
//
// # Promise
//
// Next to the real implementation runs a model made of plain slices. After every
// step the two are compared:
//
//   - A delivered message is the next one by the policy of its queue, and no other
//     consumer has it. Under strict, aging and deadline exactly one message is
//     next. With fair keys it is the oldest message of a key that has the fewest in
//     flight and is below its concurrency and rate. Which key, and under weighted
//     which level, is next is only bounded: of two waiting keys, each is served at
//     most as often as its weight before the other is served, and of two levels
//     none gets more than one message above its share.
//   - A strict queue serves by shares exactly while it is saturated. If it is
//     unknown whether the queue was evaluated between half a limit and the whole
//     limit, both modes are accepted.
//   - Under lifo, and under finish-first, exactly one message of a level is next.
//     Which keys were started survives a crash if a receiver can know of it.
//   - No message waits while a receiver has credit for it. The same is true for
//     the next session, which is ranked by its best message.
//   - A message has the level, class and key of the policy from the time it is
//     sent, and after a change of policy from the time it is reclassified. Its age,
//     sequence number and failure count do not change.
//   - A batch is rejected, or evicts others, exactly if the policy says so. A
//     rejected batch changes nothing and uses up no limit.
//   - A message is recalled only for a better one, the lowest first.
//   - A message that waits for a retry is not delivered before its time, nor is any other
//     of its session.
//   - A durable lock survives a crash: its token is valid until its end, and nobody else
//     gets the message. All other tokens are refused after a crash.
//   - A saved state is delivered with its message, the latest one, and is gone with it.
//   - Every queue contains exactly the messages that were sent and not settled,
//     each in its state, with its failure count, and its counters are right.
//   - Every answer is the answer of the model.
//   - A message that was taken for a consumer is delivered to it or returned
//     unchanged, even if the consumer leaves meanwhile. At rest none is pending.
//   - A crash leaves the complete state of one moment: not after the last
//     operation, and not before the last one that was reported to a client. So
//     nothing acknowledged or delivered is lost, nothing completed is redelivered,
//     and every batch, every message to several queues is stored completely or not
//     at all. Times of retries, durable locks and saved states are part of it. If a
//     durable lock was renewed while the disk was full, its end may be the one before.
//   - Recovering the same disk twice results in the same state.
//   - A full disk never ends a process and never prevents a start, independent of
//     what has filled it and when. A shard without any space waits, and continues
//     when there is space.
//   - The broker's time advances nearly at the true rate, however the wall clock is
//     set, and approaches the wall clock; also after a crash.
//
// The same seed results in the same run, byte for byte in its trace.
//
// runFront does the same for a whole broker and one client: a change of policy
// applies to every stored message, also if the power fails meanwhile; a receiver
// over several queues is served by its source selection; and the measurements
// equal what the model has counted, also after a stop.
//
// # Concurrency
//
// One goroutine. The background work of a shard is done when the seed says so, in
// any order. (A front has the goroutines of its broker, and continues when all of
// them are blocked.) There is one exception: if a body was moved while it is read,
// the reader has a goroutine that the simulator waits for before it continues.
//
// # Not here
//
// Goroutines and races: the tests of shard and broker. Real disks and real
// processes: test/crash and test/disk.
package sim
