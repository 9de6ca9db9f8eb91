// SPDX-License-Identifier: Apache-2.0

// Package groups runs the event processors of a hub in one goroutine from one seed: the hub
// over a journal over a disk in memory; processes that join, leave, crash, lose their
// connection, fall silent and go on as if nothing had happened; processors that balance by
// claims; pauses, rewinds and new partitions; disks that are slow or full, and power that
// fails.
//
// # Promise
//
// Next to the hub runs a model, which knows what the outside has been told. It checks:
//
//   - Each epoch of a partition belongs to one process, and epochs rise, also over crashes.
//   - A process that is connected and reports keeps a partition until it has released it,
//     or was told to and the time for that is over.
//   - A checkpoint is accepted only with the highest epoch that anybody has been told. It
//     does not go back unless it is rewound, and is not lost.
//   - Of all claims with one ETag one wins.
//   - When all is quiet every partition has an owner who knows it, counts differ by at most
//     one, and one more member makes as many move as it has to.
//   - A replay of the disk gives the state that the hub has, byte for byte of its snapshot.
//   - A full disk refuses what it cannot store, and passes.
//
// The same seed results in the same run, byte for byte in its trace.
//
// # Files
//
//	world.go     the hub, its disk and its time; what happens in a turn
//	process.go   members and what they believe
//	claims.go    processors that balance by themselves
//	check.go     what must hold; crashes; quiet
package groups
