// SPDX-License-Identifier: Apache-2.0

// Package sim runs the whole core in one goroutine from one seed: shards over a
// journal over a disk in memory, clients that send, take and settle, a clock on the
// wall that is set to and fro, and disks that are slow, full, failing, or gone with the
// power.
//
// # Promise
//
// Beside the real thing a model is kept, made of plain slices. After every step
// the two are compared:
//
//   - The message handed out is the one that is due by the policy of its queue,
//     and nobody else holds it. Under strict, aging and deadline that is one
//     message; where fair keys take turns, the oldest of a key that has the least
//     in flight and is below its cap and pace. Whose turn it is, and which level
//     under weighted, is held to a bound: of two keys that wait, each goes no
//     oftener than its weight before the other does, and of two levels none gets
//     more than one message above its share. A strict queue has shares exactly
//     while it is saturated; where it cannot be known whether it was looked at
//     between the half and the whole of a limit, either will do. Where the newest
//     or what was started goes first, that is one message of a level, and which
//     keys were started survives a crash if a receiver knows of it. Nothing waits for a receiver that
//     has room for it. The same holds for the next session, by its best message.
//   - A message has the level, class and key that the policy says, from the time
//     it is sent, and after a change of policy from the time it is classified
//     anew; its age, number and count stay as they were.
//   - A batch is turned away, or others make room for it, exactly if the policy
//     says so; what is turned away changes nothing and uses up nothing.
//   - A message is asked back for a better one only, the least first.
//   - Every queue holds exactly the messages that were sent and not settled, each
//     in its state, with its count of failures, and counts them right.
//   - Every answer is the one that the model gives.
//   - A message that was taken for a consumer arrives there or comes back as it was,
//     whoever leaves meanwhile. At rest none is on its way.
//   - A crash leaves the state of some moment, whole: no later one than the last
//     operation, and no earlier one than the last thing that anyone was told. So
//     nothing acknowledged or delivered is lost, nothing completed comes back,
//     and every batch, every message to many queues is there or is not.
//   - A disk that is recovered twice gives the same state twice.
//   - A full disk, whoever has filled it and whenever, ends no process and keeps none
//     from starting; a shard without any space left waits, and goes on when there is
//     some.
//   - Time goes on, nearly as fast as it passes, whatever is done to the clock on
//     the wall, and comes closer to it; also after a crash.
//
// The same seed gives the same run, to the last byte of its trace.
//
// RunFront does the same one storey up, with a whole broker and one client: a
// policy that changes reaches everything that waits, also if the power fails on
// the way; a receiver over several queues is served by its rule; and what was
// measured equals what the model has counted, also after a stop.
//
// # Concurrency
//
// One goroutine, which is the point. What a shard does in the background is done when
// the seed says so, in any order. (A front has those of its broker, and goes on
// when they are all at rest.) A body that was moved while its reader was
// looking for it is the one exception: the reader has a goroutine that the
// simulator waits for before it goes on.
//
// # Not here
//
// Goroutines and races: the tests of shard and broker. Real disks and real
// processes: test/crash and test/disk.
package sim
