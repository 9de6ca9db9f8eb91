// SPDX-License-Identifier: Apache-2.0

// Package hubs keeps the logs of a broker's event hubs: for each hub a journal of its
// own in a directory of the disk, and the engine that writes it.
//
// Queues share one journal because they live by settlement: what is in it is soon
// garbage, and the rest is moved. Events live by retention: the oldest segments of a hub
// are freed as a whole, and nothing is ever moved. Hubs with different retention must
// not share segments, or the longest would hold back all others.
//
//	<data>/hubs/<log>/   MANIFEST, segments …   a store of package wal
//
// # Promise
//
//   - A log that [Set.Create] has made survives a crash. One that [Set.Remove] was asked
//     to remove is gone, now or after the next start; so is one that [Set.Condemn] was
//     called for, if its definition is.
//   - A log that cannot be opened does not keep the others from being served. A caller that
//     asks for it gets an error that says why.
//   - A log without a definition is not removed by itself: a repair of the queues' journal may
//     have dropped the definition. It is named in the log of the broker. Only a log whose
//     creation was not finished, which its file CREATING says, and that holds no event
//     goes with the next start.
//
// # Descriptors
//
// All logs together have as many files open as Options.Files allows, whatever there is on the
// disk. So none holds a descriptor for its lock, either: the owner of the disk holds that of
// the directory above.
//
// # Concurrency
//
// Every method may be called from any goroutine. Run owns a goroutine for each log, and
// its journal has those of package wal.
//
// # Not here
//
// Names, definitions and consumer groups of hubs (package catalog); events (package
// streamserver).
package hubs
