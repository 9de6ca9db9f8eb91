// SPDX-License-Identifier: Apache-2.0

// Package brokertest is a broker without network protocols, for the tests of
// the packages that use it.
//
// # Concurrency
//
// [Open] starts the goroutines of the journal, the shards and the broker; Stop ends
// them from the top down and waits for them.
//
// # Not here
//
// A broker behind a socket, as users see it: that is triagetest. The tests of
// package broker, which cannot import what imports it.
package brokertest
