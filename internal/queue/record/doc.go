// SPDX-License-Identifier: Apache-2.0

// Package record defines the bytes of the records of a queue: their kinds, the layout
// of a message and of the settings. docs/format/queue-records.md describes every
// record.
//
//	record.go    Kind: the first byte of each record
//	item.go      Item: a message in a record, written and read
//	config.go    Config: the settings of a queue
//	settings.go  a Config in a record, written and read
//
// # Invariants
//
// A kind and its layout never change; a new layout gets a new kind, and old kinds stay
// readable. What Write appends, the Read of the same name returns. A reader never
// panics on damaged bytes: it marks the [machine.Reader] as bad.
//
// # Concurrency
//
// None: these are functions over values of the caller.
//
// # Not here
//
// Which record a command writes, and what a record changes: queue.
package record
