// SPDX-License-Identifier: Apache-2.0

// Package streams runs an event hub in one goroutine from one seed: the hub over a journal
// over a disk in memory, producers, idempotent and not, and readers with and without
// epochs; disks that are slow or full, and power that fails.
//
// # Promise
//
// Next to the hub runs a model of plain slices and maps, which knows what the outside has
// been told. It checks:
//
//   - Events have dense numbers. What was acknowledged, or seen by a reader, is there in its
//     place with its bytes until its retention is over, also after a crash.
//   - What was neither acknowledged nor seen may be lost by a crash, but never comes twice:
//     a batch of an idempotent producer is stored once however often it is sent.
//   - A reader gets every event once and in order from its start on. It skips only what
//     retention may have dropped, and sees nothing that a crash can take back.
//   - Readers exclude each other exactly as their epochs say.
//   - A reader that waits gets what is durable, without being asked again.
//   - A replay of the disk gives the state that the hub has, byte for byte of its snapshot.
//   - A full disk refuses senders and nobody else, and passes.
//
// The same seed results in the same run, byte for byte in its trace.
//
// # Files
//
//	world.go     the hub, its disk and its time; what happens in a turn
//	model.go     what the outside knows
//	producers.go, readers.go  those who use the hub
//	check.go     comparing the two; crashes
//
// # Not here
//
// Goroutines and races, damaged bytes: the tests of package streamserver.
package streams
