// SPDX-License-Identifier: Apache-2.0

// Package frame turns AMQP frames, performatives and SASL frames into bytes and
// back, one file for each performative.
//
// # Promise
//
// Append writes the descriptor as 00 53 xx (the only one go-amqp understands), each
// value in its shortest form, and all fields of the specification, absent ones as null:
// the SDKs for Python index them without a look at their number. Decode takes any legal form, lists that are
// longer than ours included, and reports a mandatory field that is missing as
// [errMissing]. Transfer, Flow and Disposition are decoded without allocating.
//
// # Assumptions
//
// A decoded struct borrows its byte slices from the frame; strings are copies.
// What is kept longer than the frame has to be copied first.
//
// # Format
//
//	size uint32 │ doff uint8 │ type uint8 │ channel uint16 │ extended header
//	described list: the performative                       │ payload
//
// size counts itself; doff counts words of four bytes up to the body.
//
// # Concurrency
//
// Nothing here is shared.
//
// # Not here
//
// What a performative means, and whether it may come now: package endpoint.
// Message sections inside a payload: package message.
package frame
