// SPDX-License-Identifier: Apache-2.0

// Package ordering has the settings that decide in which order a queue delivers
// its messages: priority levels, the discipline that chooses among them, the
// order inside a level, and the shares of fair keys.
//
// It has plain values without behaviour. A policy produces an Order, and a queue orders
// its messages by it. Both import this package, and neither imports the other.
//
// # Format
//
// The numbers of Discipline and LevelOrder are on disk, in queue records. They never
// change.
//
// # Not here
//
// The algorithms: queue. Names of classes and levels, and the checks of what an
// operator writes: policy.
package ordering
