// SPDX-License-Identifier: Apache-2.0

// Package message is the message as every room sees it: the encoded sections of
// AMQP 1.0 [AMQP 3.2], kept as they came.
//
// # Promise
//
// What [Parse] accepted is well formed to the last leaf, bodies included, and of
// the types the specification demands, so that no accessor can fail and no
// consumer's decoder chokes on what some sender made. Accessors read lazily and
// do not allocate. [Message.Edit] and [AppendDelivery] leave every section they
// do not change byte for byte as it was, and their results parse again.
//
// # Assumptions
//
// The bytes handed to Parse do not change afterwards. Values and strings taken
// from a Message share its bytes and keep them alive; clone what outlives it by
// far.
//
// # Format
//
//	header  delivery-annotations  message-annotations
//	properties  application-properties  body …  footer
//
// Every section may be absent; the order is fixed. Each begins with 00 53 and its
// code: the few senders that spell descriptors otherwise are corrected by Parse,
// because go-amqp reads no other form. So are rhea, which writes the footer before
// the body, and uAMQP, which writes delivery-annotations there too.
//
// # Concurrency
//
// A Message never changes and may be read by many goroutines.
//
// # Not here
//
// What a message is worth (policy), where it waits (queue), whether it matches
// (filter), how it travels (amqp).
package message
