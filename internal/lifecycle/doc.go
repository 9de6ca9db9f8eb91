// SPDX-License-Identifier: Apache-2.0

// Package lifecycle starts the layers of a process bottom up and stops them top
// down.
//
// # Promise
//
// A layer is stopped, by canceling its own context, only after every layer
// above it has returned or has used up its part of the time: the journal
// outlives the shards, the shards outlive the connections. The context ends
// with the cause that ended the stack, and then has the deadline of the layer.
//
// A layer that returns before it is stopped stops all others. All layers
// together stop within the grace period: a layer that is still running then is
// named in the error and abandoned.
//
// # Concurrency
//
// Go and Wait are called from one goroutine, Go first. Each layer runs on a
// goroutine that the Stack owns and Wait waits for.
//
// # Not here
//
// Stopping nicely is a courtesy to clients, never a means of durability: nothing
// here is needed for what was acknowledged to survive.
package lifecycle
