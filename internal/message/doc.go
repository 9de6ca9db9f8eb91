// SPDX-License-Identifier: Apache-2.0

// Package message is the message as all packages use it: the encoded sections
// of AMQP 1.0 [AMQP 3.2], unchanged as they were received.
//
// # Promise
//
// A message that [Parse] accepted is completely well formed, bodies included,
// and has the types that the specification demands. So no accessor can fail,
// and no consumer's decoder fails because of a sender. Accessors read lazily
// and do not allocate. [Message.Edit] and [AppendDelivery] leave every section
// they do not change byte for byte as it was, and their results parse again.
//
// # Assumptions
//
// The bytes passed to Parse do not change afterwards. Values and strings read
// from a Message share its bytes and keep them in memory; clone what is needed
// much longer than the message.
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
// Priority (policy), storage and order (queue), matching (filter), transport
// (amqp).
package message
