// SPDX-License-Identifier: Apache-2.0

// Package store reads and makes the files of a log: segments, the spares that become
// segments, and the two files of the manifest. It knows one file at a time, and from
// them where the log ends.
//
// # Promise
//
//   - What is read is what was written, or it is refused with a [format.DamageError]
//     that says where. An error of the disk is none of damage, and names the file as
//     it is called now.
//   - A file is durable, name and all, when it is returned as a segment or a spare.
//     Of one that could not be made nothing is left.
//   - Whenever the power fails one of the two files of the manifest is whole.
//   - A batch that a crash has torn is the end of the log. Anything else that is no
//     batch, and was one, is damage: [LogEnd] says how the two are distinguished.
//
// # Concurrency
//
// There is no lock here. Package wal guards the capacity of a segment with its mutex;
// any number of goroutines may read a segment below what is synced.
//
// # Files
//
// segment.go and spare.go are the files of batches, file.go gives them their names in
// errors, list.go finds them. record.go reads one record, scan.go all batches of a
// segment, end.go finds the end of the log. copies.go is the manifest.
//
// # Not here
//
// The bytes: package format. Which segments are needed, what is appended and when it
// is synced: package wal.
package store
