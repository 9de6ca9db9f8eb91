// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

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

// The settings of an order are those of package ordering.
type (
	// Level is the priority of a message; a higher level is served first.
	Level = ordering.Level
	// Class is the number of the policy class a message was put in; zero is none.
	Class = ordering.Class
	// Discipline is the rule by which the next message is chosen among the levels.
	Discipline = ordering.Discipline
	// Within is the order inside a level.
	Within = ordering.Within
	// Order says how the next message is chosen. The zero value is Strict.
	Order = ordering.Order
	// Share is what a fair key may have.
	Share = ordering.Share
	// Saturation says when a strict queue has more than it can keep up with.
	Saturation = ordering.Saturation
)

// The constants of an order, from package ordering.
const (
	DefaultLevel = ordering.DefaultLevel

	Strict   = ordering.Strict
	Aging    = ordering.Aging
	Deadline = ordering.Deadline
	Weighted = ordering.Weighted

	Fifo        = ordering.Fifo
	Lifo        = ordering.Lifo
	FinishFirst = ordering.FinishFirst
)
