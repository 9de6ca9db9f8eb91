// SPDX-License-Identifier: Apache-2.0

// Package repair checks, lists and repairs the store of package wal while no process
// has it open.
//
// # Promise
//
//   - [Verify] and [Dump] change nothing. [Verify] checks every byte that a start or a
//     read would use, and reports each damaged place as a [DamageError].
//   - [Repair] drops damaged records and no others. A record that is whole keeps its
//     position, since other records refer to it by its position.
//   - An error of the disk is not damage: [Repair] then stops and drops nothing.
//   - [Repair] may be run again after a crash in the middle of it.
//   - After [Repair], [Verify] finds no damage and the store opens. A replay is told where
//     records were dropped.
//
// # Files
//
// scanall.go opens a store and scans its segments; verify.go reports what the scan
// found, and lists records. repair.go is the sequence of a repair. It uses rebuild.go,
// which restores a lost manifest from the log, and rewrite.go, which replaces the
// damaged bytes of one segment.
//
// # Not here
//
// Reading the files and finding the end of the log: package store. The bytes: package
// format. What a running store does with a torn batch: package wal.
package repair
