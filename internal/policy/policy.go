// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/ordering"
)

// MaxClasses is how many classes a policy can have: a class is a number of eight
// bits, and zero means none.
const MaxClasses = 255

// Policy is what an operator decided about the priorities of the messages of one
// queue. It never changes after Parse and may be shared by goroutines. The zero
// value is the policy of a plain queue: strict, without classes or limits.
type Policy struct {
	Revision    int64 // counts the changes; given by whoever stores it
	Discipline  ordering.Discipline
	Aging       AgingRule // for the discipline of that name
	Saturation  ordering.Saturation
	LevelOrder  ordering.LevelOrder // the order inside a level
	FairKey     string              // an expression; empty means that nobody takes turns
	Keys        []Share             // of single fair keys
	KeyDefaults Share               // of all other fair keys
	Watermarks  Depth               // from which on the lowest are turned away; zero is none
	Classes     []Class             // the first that takes a message has it
	Alerts      Alerts

	fairKey *filter.Expr
	rules   *filter.RuleSet // the conditions of the classes; nil without classes
}

// AgingRule says how waiting raises a message.
type AgingRule struct {
	Interval time.Duration // wait that raises by one level
	MaxLevel uint8         // no message rises above it by waiting
}

// Class is a kind of message that the operator gave a name and a worth.
type Class struct {
	Name             string
	Level            uint8
	LevelFromMessage bool // Level is unset: the message's own priority applies
	When             string
	Objective        Objective
	Weight           uint32 // zero is not given, and counts as one
	Rate             Rate   // at which messages may come in; zero is any
	MaxMessages      int64  // messages that may wait; zero is any number
	MaxBytes         int64  // that may wait; zero is any number
	Overflow         Overflow
	ExpectedRate     Rate // at which messages should be worked off; zero is not known

	when *filter.Expr
}

// Objective is the promise that a share of the messages starts within a time.
type Objective struct {
	Wait   time.Duration // zero is no objective
	Target float64       // between 0 and 1
}

// DefaultShare is the share of an objective that names none.
const DefaultTarget = 0.95

// Overflow says what happens to a message that exceeds a limit.
type Overflow uint8

// What can happen at a limit.
const (
	Reject Overflow = iota // the new message is rejected
	Evict                  // the oldest of the class is removed
)

var overflows = []string{"reject", "evict"}

// String returns the word that a policy uses.
func (s Overflow) String() string { return overflows[s] }

// Share is what a fair key may have.
type Share struct {
	Key          string
	Weight       uint32 // turns in proportion to it; zero is not given, and counts as one
	Concurrency  uint32 // messages in flight at a time; zero is any number
	Rate         Rate   // at which messages may come in; zero is any
	DeliveryRate Rate   // at which messages are handed out; zero is any
}

// Alerts says who is notified when the state of an objective changes.
type Alerts struct {
	Webhook string
	Secret  string // signs what is sent to Webhook
}

// ClassName returns the name of a class by its number; empty for zero and for
// numbers that the policy does not have.
func (p *Policy) ClassName(class uint8) string {
	if c := p.class(class); c != nil {
		return c.Name
	}
	return ""
}

// class returns a class by its number, nil if there is none.
func (p *Policy) class(n uint8) *Class {
	if n == 0 || int(n) > len(p.Classes) {
		return nil
	}
	return &p.Classes[n-1]
}
