// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Config is what an operator decides about a queue. The zero value is an open,
// strict queue without limits whose locks last no time at all: set LockFor.
type Config struct {
	LockFor     time.Duration // how long a lock lasts without renewal
	TTL         time.Duration // longest life of a message; zero is for ever
	MaxFailures uint32        // failed deliveries that make a dead letter; zero is never
	Duplicates  time.Duration // window of duplicate detection; zero is off
	MaxBytes    int64         // of Footprint; zero is no limit
	MaxCount    int64         // of all messages; zero is no limit

	Sessions          bool // every message has a session; fixed by New
	DeadLetterExpired bool // a message that outlives its TTL is a dead letter
	SendPaused        bool // Enqueue refuses
	ReceivePaused     bool // Take finds nothing
	IsDead            bool // holds dead letters: nothing counts, expires or dies; fixed by New

	Order Order
}

// Discipline is the rule by which the next message is chosen among the levels.
type Discipline uint8

// The disciplines. They are on disk and never change.
const (
	// Strict serves the highest level first, inside it the oldest, and goes over
	// to the shares of Weighted while there is Order.Saturation.
	Strict Discipline = iota
	// Aging lifts a message by one level for every Order.Every it waited, up to
	// Order.UpTo; among equals the oldest goes first.
	Aging
	// Deadline serves the earliest enqueue time plus Order.Objective of its
	// level first; a level without an objective comes after all that have one.
	Deadline
	// Weighted gives each level that has messages a share of the deliveries in
	// proportion to Order.Weight.
	Weighted
)

// Order says how the next message is chosen. The zero value is Strict.
type Order struct {
	Discipline Discipline
	Every      time.Duration   // Aging: wait that lifts by one level; zero lifts never
	UpTo       Level           // Aging: no message rises above it by waiting
	Objective  []time.Duration // Deadline: by level; missing or zero is none
	Weight     []uint32        // Weighted, and Strict when saturated: by level; missing or zero is one
	Saturation Saturation      // Strict: when there is too much for it

	Within Within  // inside a level
	Fair   bool    // inside a level the fair keys take turns
	Others Share   // Fair: of a key that Shares does not name
	Shares []Share // Fair: of single keys
}

// Share is what a fair key may have.
type Share struct {
	Key    string
	Weight uint32  // turns in proportion to it; zero is one
	Cap    uint32  // messages in flight at a time; zero is no limit
	Rate   float64 // messages handed out per second; zero is no limit
	Burst  uint32  // messages handed out at once before Rate holds; zero is one
}
