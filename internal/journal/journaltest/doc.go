// SPDX-License-Identifier: Apache-2.0

// Package journaltest is the conformance suite of package journal. Whatever
// passes it can stand under a shard.
//
// # Promise
//
// Each test states one sentence of the contract in its name, and uses nothing
// but the interface and what a [Store] offers. Those about full and slow disks need
// a store that is a [Disk], too.
//
// # Not here
//
// Crashes, damage and disks that fail: they need to know what is underneath, and
// are tested by each implementation.
package journaltest
