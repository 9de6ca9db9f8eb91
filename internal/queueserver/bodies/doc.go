// SPDX-License-Identifier: Apache-2.0

// Package bodies has the bytes of messages: as the journal returns them, as a
// settlement changes them, and in memory.
//
// It computes only. Package queueserver decides which bodies are read and stored, and
// when.
//
// # Dead letters
//
// A dead letter keeps the body it had in the main queue. Its reason is a second, small
// body. Parse merges the two. If the first cannot be read, Parse returns a placeholder
// that has the reason and no content.
//
// # Invariants
//
//  1. The bodies in a Cache never have more bytes in all than its limit.
//  2. Parse returns an error, and no placeholder, if the body was moved or the journal
//     is closed: such a body can be read later, or somewhere else.
//
// # Files
//
//	cache.go   recent bodies in memory
//	parse.go   what to read for a message, and the message in what was read
//	reason.go  reasons of dead letters, and placeholders
//	edit.go    messages with other properties
package bodies
