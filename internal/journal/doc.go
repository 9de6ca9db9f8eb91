// SPDX-License-Identifier: Apache-2.0

// Package journal is the contract of a durable log that many shards share.
//
// # Promise
//
//   - After Append returned, Read finds the records, and they have their final
//     addresses. A crash may still lose them.
//   - Once a Status says that a position is Durable, every record up to it
//     survives a crash.
//   - After a crash the log holds what was durable, and perhaps some of what
//     was appended behind it, without gaps: if a record survived, so did every
//     earlier one, and the whole of its group.
//   - Replay yields what was appended, in order, byte for byte, or an error. A
//     record that fails its checksum is never yielded and never read.
//   - A claim that was released, or that another one followed, can write nothing
//     any more, and its owner gets ErrFenced. Other shards are not affected.
//   - A failed write or sync is final. No record is reported as durable after
//     it. The process must end and recover.
//
// # Assumptions
//
// Owners release nothing that depends on a record before it is Durable, nor after
// their lease, and keep only segments that they have not given up before.
//
// # Concurrency
//
// Every method may be called from any goroutine; for one claim, the methods that
// take it from one goroutine at a time, but for Truncate and Release. Watchers are called from the goroutine
// that commits.
//
// # Not here
//
// What records mean. How many journals there are. The implementations: package
// wal for one disk. The tests that all of them pass: package journaltest.
package journal
