// SPDX-License-Identifier: Apache-2.0

// Package vfs is the disk, as little of it as a journal needs: the real one
// ([OS]), one in memory that can crash ([Mem]), and one that fails on demand
// ([Fault]).
//
// # Promise
//
// Code that works on Mem for every seed of CrashClone works on a real disk: Mem
// loses everything that the rules below allow a disk to lose, and OS requests
// from the kernel everything that the rules require.
//
//   - What was written to a file before Sync returned survives.
//   - What was written after the last Sync survives in any part: each sector of
//     512 bytes independently, in any order.
//   - A sector is written completely or not at all.
//   - What was written before a failed Sync can still be read. A later Sync
//     does not make it durable, even if it succeeds: kernels drop the pages of a
//     failed write-back from their list. It must be written again.
//   - Creates, renames and removes survive after SyncDir of their directory;
//     before it any of them may be lost, but not one without the later ones
//     that concern the same name or file.
//   - A disk has a limited size, which other processes use, too: Mem and Fault
//     reject bytes that do not fit. Overwriting written or allocated bytes needs
//     no space.
//
// # Assumptions
//
// A sync that returns no error has reached the disk. Stored bytes may become
// corrupt (Fault flips bits); the reader must detect that. Directories are
// created once, with the store, and are not part of the crash model.
// Overwriting needs no space, which is not true for copy-on-write file systems
// (btrfs, ZFS).
//
// # Descriptors
//
// While it is locked, an OS keeps its directory open and some descriptors in
// reserve. It closes them one by one when the process or the system has no
// others left, and reopens them when it can. When the reserve is empty, a call
// fails with [ErrTooManyFiles] and has done nothing.
//
// Stores that have many files, as a thousand event hubs do, open them when they use them:
// see [OnDemand].
//
// # Concurrency
//
// Every method may be called from any goroutine. The package starts none.
//
// # Not here
//
// Checksums, buffering, retries and file formats. Untrusted paths: all names
// are our own. OS still rejects names that leave its root.
package vfs
