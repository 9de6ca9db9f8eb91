// SPDX-License-Identifier: Apache-2.0

// Package codec turns AMQP 1.0 values into bytes and back [AMQP 1.6].
//
// Writing is a family of Append functions, each in the shortest encoding of its
// type. Reading is either typed, through a [Reader] (performatives, sections),
// or by discovery, through a [Value] (annotations, application properties,
// management bodies).
//
// # Promise
//
// A Reader checks every length against the bytes it has before using it, never
// allocates because of a number a peer sent, and never panics. A value has at
// most as many elements as bytes, and [maxEmpty] without bytes. A value that
// [Reader.Check] accepted can be read completely without an error. A Value that
// was read and appended again has the same type and content; the bytes of
// compound values are unchanged.
//
// # Assumptions
//
// The bytes passed to a Reader do not change while it, or a Value, slice or
// string read from it, is in use. Methods that copy say so.
//
// # Format
//
// A value is a constructor and its data. The high half of the constructor
// determines the length of the data, so that unknown content can be stepped
// over:
//
//	0x4_ nothing    0x5_ 1 byte    0x6_ 2    0x7_ 4    0x8_ 8    0x9_ 16
//	0xa_ size8, bytes              0xb_ size32, bytes
//	0xc_ size8, count8, values     0xd_ size32, count32, values
//	0xe_ size8, count8, constructor, data …   0xf_ the same with 32 bits
//	0x00 descriptor, value
//
// # Concurrency
//
// Nothing here is shared. Values may be read by many goroutines at once.
//
// # Not here
//
// Frames and performatives (package frame), message sections (package message).
package codec
