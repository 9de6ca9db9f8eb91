// SPDX-License-Identifier: Apache-2.0

// Package pools knows the worker pools that have announced themselves: what each does,
// and what it was ordered to do.
//
// A pool is a name at a source: processes that announce the same name at the same queue
// or subscription are instances of one pool. Each instance reports every half second and
// gets the orders of its pool in return: paused or not, and how many slots to have.
//
// # Promise
//
// An order is known to all live instances within one report. The broker stores no
// orders: instances keep theirs, with a seal, tell them in each report, and so teach them to
// a broker that has just started. Orders that the broker has not sealed are not learned, and
// an order that was given in this life is never overruled by a report.
//
// An instance that is silent for three seconds is forgotten. The orders of a pool without
// instances are kept for a day, for processes that restart.
//
// # Assumptions
//
// The caller has checked that a reporter may listen to the sources in its report. What it
// tells counts for those at the same sources, and for those that name one of them: a report
// that is made up keeps no pool idle whose messages its sender could not take.
//
// # Limits
//
// Everything that is kept is bounded: pools, instances, and the lengths of all texts.
// No queue or topic can have more than a tenth of either.
//
// # Concurrency
//
// A Registry may be used by several goroutines; it starts none. The time is an argument.
// registry.go has the announcing and the orders, seal.go how orders are known again, spare.go
// for whom a full pool counts, report.go what is told and shown.
package pools
