// SPDX-License-Identifier: Apache-2.0

// Package vfs is the disk, as little of it as a journal needs: the real one
// ([OS]), one in memory that can crash ([Mem]), and one that fails on demand
// ([Fault]).
//
// # Promise
//
// Code that keeps its promises on Mem, whatever the seed of CrashClone, keeps
// them on a real disk: Mem forgets everything that the rules below allow a disk
// to forget, and OS asks the kernel for everything that the rules require.
//
//   - What was written to a file before Sync returned survives.
//   - What was written after the last Sync survives in any part: each sector of
//     512 bytes on its own, whatever the order of the writes.
//   - A sector is written whole or not at all.
//   - What was written before a Sync that failed can still be read, and a later
//     Sync does not make it safe, whatever it returns: kernels drop the pages of
//     a failed write-back from their list. Only writing it again does.
//   - Creates, renames and removes survive after SyncDir of their directory;
//     before it any of them may be lost, but not one without the later ones
//     that touch the same name or file.
//   - A disk has an end, which others use up, too: Mem and Fault refuse the bytes
//     that do not fit, and need none for what overwrites written or allocated
//     ones.
//
// # Assumptions
//
// The disk does not lie about a sync. Bytes may rot (Fault flips bits), and it
// is the business of the reader to notice. Directories are made once, when a
// store is, and are not part of the crash model. Overwriting needs no space, which
// is not so where every write goes to a new place (btrfs, ZFS).
//
// # Descriptors
//
// While a lock is held on it an OS keeps its directory open and some descriptors
// in reserve, which it gives up one by one when the process or the system has
// none left, and takes back as soon as it can. When there is nothing to give up
// any more a call fails with [ErrTooManyFiles], and has done nothing.
//
// # Concurrency
//
// Every method may be called from any goroutine. The package starts none.
//
// # Not here
//
// Checksums, buffering, retries and file formats. Paths from outside: names
// are our own, and OS refuses those that leave its root all the same.
package vfs
