// SPDX-License-Identifier: Apache-2.0

// Package wal keeps a journal in the files of one directory of one disk.
//
// # Promise
//
// That of package journal. Beyond it:
//
//   - One write and one sync make everything durable that was appended, by all
//     shards, while the sync before was under way. There are no timers.
//   - A batch that a crash left unfinished is cut off. Anything else that is not
//     as it was written is damage: Open, Claim and Read refuse it with a
//     [format.DamageError] that says where. Package repair removes it.
//   - A full disk is found when a segment is made, never in the middle of a
//     batch, and is never the end: what was refused may be tried again. Truncate
//     needs no space. A process without a free file descriptor is treated alike.
//   - The blocks that are reserved for upkeep are on disk, allocated, before
//     senders are admitted: no burst and no other process can take them. A store
//     opens, and its shards can be claimed, when nothing else is left.
//   - A full disk in an idle store is examined once a second, and not written.
//   - A store that is idle for a few seconds keeps 32 MiB beside its records and
//     the reserve; a small one (see small.go) 1.5 MiB, and less than 1 MiB when it is new.
//   - The manifest is there three times: in two files, either of which is enough,
//     and in the log, where package repair finds it.
//
// # Assumptions
//
// A disk writes a sector of 512 bytes whole or not at all, and what it says is
// synced is synced. After a sync that failed nothing is assumed: what it was for
// is written again by the next process. To overwrite takes no space; where it does
// (btrfs, ZFS) a commit that finds none waits for some, and the reserve is worth
// less. A store has one process at a time, which a lock ensures.
// The last batch before a crash has nothing behind it that proves that it was
// synced, so damage to it, between the crash and the next start, cannot be distinguished
// from a torn write; nor can damage that takes, with it, the batches before it.
// The manifest records once a second, and at Close, how far the log is synced. Up to
// there the two can be distinguished.
//
// # Format
//
// Segments hold batches, batches hold frames, a frame holds a record; the
// MANIFEST says what is still needed. Package format has the bytes, and
// docs/format/journal.md draws them.
//
//	segment:  header | batch | batch | … | seal | not yet used
//	batch:    header | frame | frame | …
//	frame:    checksum, length, shard, epoch, number | payload | padding
//
// The address of a record is the number of its segment times the segment size,
// plus the offset of its frame.
//
// # Concurrency
//
// Append copies into a buffer under a short mutex. Commit, which Run calls in a
// loop, swaps that buffer, writes and syncs it. A preallocator within Run makes the next
// segments and the reserve; an Append for upkeep that finds none ready has it cut
// short what it does. Another goroutine of it writes the manifest once a second while
// there are commits. Truncate and Claim write it from their caller's.
// Work that must not be done by two at once has a token, a channel of one; no
// mutex is held across a call to the disk.
//
// # Invariants
//
//  1. A batch is written only when the one before it has been synced.
//  2. Groups span neither batches nor segments.
//  3. Record numbers are dense, across shards, batches and segments.
//  4. A segment is freed only after a manifest that does not need it is durable,
//     and the last one with a batch in it never.
//  5. Ready segments are numbered on from the active one, and durable. A segment
//     is sealed only if there is one, which from then on is never missing.
//  6. Nothing is freed, and no claim returned, before the manifest that says so
//     is durable: in the log, unless there is no space, and then in both files.
//  7. When a sender's group was admitted, what is available is not less than the target,
//     with what its owner reserves for that group.
//
// # Not here
//
// When to truncate and what to copy forward: the owner of a shard knows which of
// its records are alive.
package wal
