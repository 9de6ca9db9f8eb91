// SPDX-License-Identifier: Apache-2.0

// Package reclassify applies a changed policy to the stored messages of a queue, and
// previews what a policy would change.
//
// Reclassifier (reclassify.go) is a job. The queues that were added have their turns, by
// owner: each is examined for a slice of time (pass.go). So who has a short queue does not
// wait for the conditions of others, and their millions of messages. A dry run (dryrun.go)
// examines the same messages and changes nothing.
//
// # Invariants
//
//  1. What is left to do is durable: a definition has the revision by which its messages
//     were last classified, and that is written when all of them are.
//  2. A message that arrived during a pass, classified by the old policy, is examined in
//     another pass; so is a scheduled one that got another number meanwhile.
//  3. A message that cannot be read keeps its level, has no class, and delays no other.
//
// # Concurrency
//
// All methods may be called from any goroutine; Wait blocks. Messages are read outside of
// the shard.
package reclassify
