// SPDX-License-Identifier: Apache-2.0

// Package cost says how much memory a JSON or XML text takes when it is decoded, before
// it is decoded.
//
// A text of three bytes for each element, such as [{},{},{}], becomes a hundred times as
// large when it is decoded into structs. JSON (json.go) and XML (xml.go) read a text once,
// build nothing, and return a cost, which the caller charges to the sender of the text.
//
// # Promise
//
// The cost is at least what the decoder of the standard library keeps while it decodes the
// text, the growing of slices and maps included, and garbage not. A text with a list, an
// object or an element that is larger than any request needs is refused.
//
// # Assumptions
//
// A text that is not well-formed has the cost of its well-formed beginning. The decoder
// refuses it: that of JSON before it builds anything, that of XML where the beginning ends.
//
// # Concurrency
//
// Everything here is a pure function, but for a cache of types, and may be called by several
// goroutines.
package cost
