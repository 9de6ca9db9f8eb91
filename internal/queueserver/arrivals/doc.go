// SPDX-License-Identifier: Apache-2.0

// Package arrivals tracks which messages of a queue have arrived durably.
//
// A delivery leaves the broker when the records it depends on are durable. A message
// without failures depends on its own arrival alone. Tracker returns where in the
// journal that arrival is, so that such a delivery does not wait for later records.
//
// It computes only: package queueserver tells it which numbers were assigned, where
// they were appended, and what is durable.
//
// # Invariants
//
//  1. The pending arrivals ascend, in number and in position.
//  2. There are never more of them than groups on their way to the disk.
package arrivals
