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
// orders: instances keep theirs, tell them in each report, and so teach them to a broker
// that has just started. An order that was given here is never overruled by a report.
//
// An instance that is silent for three seconds is forgotten. The orders of a pool without
// instances are kept for a day, for processes that restart.
//
// # Assumptions
//
// The caller has checked that a reporter may listen to the source it announces itself
// at. One that may can take all messages from it, so it may also say what was ordered.
// It cannot say so for pools at other sources, whatever name it uses.
//
// # Limits
//
// Everything that is kept is bounded: pools, instances, and the lengths of all texts.
// No source can have more than a tenth of either.
//
// # Concurrency
//
// A Registry may be used by several goroutines; it starts none. The time is an argument.
// registry.go has the announcing and the orders, report.go what is told and shown.
package pools
