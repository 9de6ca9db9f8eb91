// SPDX-License-Identifier: Apache-2.0

// Package value contains the values of the filter language: their types, their
// arithmetic and order, and their forms as text and on the wire.
//
// A [Value] is a number, a string, an instant and so on, or unknown. Integers and
// doubles of the wire are one kind each; [Width] remembers the wire type, so that
// a changed value is written in the type that it came in.
//
// # Files
//
//	value.go    the type, its constructors and accessors, its text
//	arith.go    sum, difference, product, quotient, remainder
//	compare.go  order and equality, keys for hash tables
//	convert.go  conversion between kinds, for actions
//	typed.go    values that rule descriptions write as text with an XML type
//	wire.go     AMQP values
//
// # Invariants
//
//  1. [Equal] is [Same] exactly when both values have the same [Value.Key]. The
//     index over rules relies on it.
//  2. Numbers of all widths compare by their exact value. No rounding makes unlike
//     numbers equal.
//  3. Reading a value of the wire does not allocate, except a character that is
//     not ASCII.
//
// # Not here
//
// Truth values, and what an unknown operand does to a condition: package filter.
package value
