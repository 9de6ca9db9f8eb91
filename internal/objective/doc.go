// SPDX-License-Identifier: Apache-2.0

// Package objective measures the messages of a queue, class by class. It
// reports whether each class meets its objective and how many workers are
// needed to meet it.
//
// # Promise
//
// Counting an event does not read the clock: time is an argument. It does not
// allocate, except for the first event of a class. Memory is fixed: 15 KB for a
// class with events, half a kilobyte for a class without.
//
// Durations are exact to 3 %. A rate of the last minute is the number of events
// in it, divided by a minute. Estimates of future rates need no warm-up.
//
// # How an objective is evaluated
//
// An objective says that a share of the messages of a class is delivered for
// the first time within a wait. Late messages are counted in two measuring
// windows: a short one of five minutes and a long one of an hour. For waits
// longer than a minute, the short one is five times the wait and the long one
// sixty times. The burn rate of a window is the share of late messages in it,
// divided by the share that may be late. The objective is missed when both burn
// rates are 1 or more, at risk when one is, else met. So a short stop puts it
// at risk, and a missed objective stays at risk until the long window has
// recovered.
//
// A message that expires before its first delivery counts as late, however long
// it waited. Messages that have waited longer than the objective allows count
// as late in both windows while they wait. Their number is estimated from the
// age of the oldest.
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
//	    six rates: arrived, completed, dead-lettered, refused, evicted, expired
//	    state (a byte), window: current bucket, its end, 60 times in time and late
//	    0, or 1 and three measures: wait, service, end to end
//
//	rate       total, pending, first, folded, three averages
//	measure    two histograms, count, sum, number of buckets, buckets
//	histogram  count, sum, runs of (empty before, length, counts), 0 0
//
// Version 1 has no rate of expired messages.
//
// # Concurrency
//
// A Meter has no goroutine and no lock; it belongs to the goroutine of its owner.
// Demand is a function.
//
// # Invariants
//
//  1. The sum of a window's buckets is its long count.
//  2. A quantile is never less than that of a smaller share.
//
// # Not here
//
// What a class is: package policy. The ready messages and their age: the queue;
// the caller of Observe reads them. Where alerts go: the broker.
package objective
