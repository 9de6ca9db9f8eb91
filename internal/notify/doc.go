// SPDX-License-Identifier: Apache-2.0

// Package notify is a wake-up signal between goroutines that is never lost and
// never blocks.
//
// # Promise
//
// After Notify the channel of a Signal can be received from at least once.
// Several calls before a receive are one signal: the receiver reads the state,
// not the number of calls.
//
//	change the state, then Notify    │    receive, then read the state
//
// In this order the receiver gets every change: either it reads after the
// change, or there is a signal left to receive.
//
// # Concurrency
//
// Notify may be called from any goroutine, with locks held. One goroutine receives.
package notify
