// SPDX-License-Identifier: Apache-2.0

// Package lifecycle starts the layers of a process bottom up and stops them top
// down.
//
// # Promise
//
// A layer is told to stop, through its own context, only after every layer above
// it has returned, or has used up its part of the time: the journal outlives the
// shards, the shards outlive the connections. The context ends with the cause that
// ended the whole, and then says until when the layer may take.
//
// A layer that returns unasked takes the others down. All layers together stop
// within the grace, whatever they do: one that is still running then is named in
// the error and left behind.
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
