// SPDX-License-Identifier: Apache-2.0

// Package objective measures what becomes of the messages of a queue, class by
// class, and says whether what was promised is kept and how many workers it
// takes to keep it.
//
// # Promise
//
// Counting an event neither allocates, beyond the first of a class, nor looks at
// the clock: time is an argument. Memory is fixed: 15 KB for a class in which
// something has happened, half a kilobyte for one in which nothing has.
//
// Lengths of time are known to 3 %. A rate of the last minute is what happened in it, divided
// by a minute; what is concluded from it for the future needs no warm-up.
//
// # How a promise is judged
//
// A class promises that a share of its messages is delivered for the first time
// within a wait. Late ones are counted in two windows: a short one of five
// minutes and a long one of an hour, both stretched for promises longer than a
// minute so that the short one is five times the wait and the long one sixty
// times. The burn rate of a window is the share of late messages in it, divided
// by the share that may be late. The promise is missed when both burn rates are
// 1 or more, at risk when one is, else met. So a short stop is at risk and not
// missed, and what was missed is at risk until the hour looks good again.
//
// A message that is lost before its first delivery, because it expired, counts as
// late, however long it waited. Messages that wait longer than promised without
// having started count as late in both windows while they wait. How many these are is estimated from the age
// of the oldest.
//
// # Format
//
// A snapshot is a version byte, 2, and then, all numbers as varints and all
// fractions as their IEEE 754 bits:
//
//	operations, each a rate          (number of kinds first)
//	time of the last rotation
//	classes                          (number first), each:
//	    name (length first), wait, share
//	    six rates: arrived, completed, died, refused, evicted, expired
//	    state (a byte), window: current slot, its end, 60 times good and late
//	    0, or 1 and three measures: wait, service, end to end
//
//	rate       total, pending, first, folded, three averages
//	measure    two histograms, count, sum, number of buckets, buckets
//	histogram  count, sum, runs of (empty before, length, counts), 0 0
//
// Version 1 has no rate of expired ones.
//
// # Concurrency
//
// A Meter has no goroutine and no lock; it belongs to the goroutine of its owner.
// Demand is a function.
//
// # Invariants
//
//  1. The sum of a window's slots is its long count.
//  2. A quantile is never less than that of a smaller share.
//
// # Not here
//
// What a class is: package policy. Who waits and since when: the queue, which is
// asked by whoever calls Observe. Where alerts go: the broker.
package objective
