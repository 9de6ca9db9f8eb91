// SPDX-License-Identifier: Apache-2.0

// Package notify has one thing: a wake-up call between goroutines that is never
// lost and never blocks.
//
// # Promise
//
// After Notify the channel of a Signal can be received from at least once. Calls
// that come before it was received from are one: the receiver looks at the state
// that the signal is about, not at how often it was told.
//
//	change the state, then Notify    │    receive, then look at the state
//
// In this order the receiver sees every change: either it looks after the change,
// or there is a signal left to receive.
//
// # Concurrency
//
// Notify may be called from any goroutine, with locks held. One goroutine receives.
package notify
