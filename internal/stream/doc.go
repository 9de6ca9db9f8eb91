// SPDX-License-Identifier: Apache-2.0

// Package stream is one partition of an event hub: an append-only log of batches of
// events, with retention.
//
// # Files
//
//	key.go    which partition the events of a key belong to
//	start.go  where a reader begins
package stream
