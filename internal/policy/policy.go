// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/ordering"
)

// maxClasses is how many classes a policy can have: a class is a number of eight
// bits, and zero means none.
const maxClasses = 255

// Policy has the settings of an operator for the priorities of the messages of one queue.
// It never changes after Parse and may be shared by goroutines. The zero value is the
// policy of a plain queue: strict, without classes or limits.
type Policy struct {
	Revision    int64 // counts the changes; set by the catalog, which stores it
	Discipline  ordering.Discipline
	Aging       AgingRule // for the discipline aging
	Saturation  ordering.Saturation
	LevelOrder  ordering.LevelOrder // the order inside a level
	FairKey     string              // an expression; empty: no round robin
	Keys        []Share             // of single fair keys
	KeyDefaults Share               // of all other fair keys
	Watermarks  Depth               // from which on the lowest are rejected; zero is none
	Classes     []Class             // the first that matches a message has it
	Alerts      Alerts

	fairKey *filter.Expr
	rules   *filter.RuleSet // the conditions of the classes; nil without classes
}

// AgingRule says how waiting raises a message.
type AgingRule struct {
	Interval time.Duration // wait that raises by one level
	MaxLevel uint8         // aging raises no message above it
}

// Class is a named kind of messages with a level and limits.
type Class struct {
	Name             string
	Level            uint8
	LevelFromMessage bool // Level is unset: the message's own priority applies
	When             string
	Objective        Objective
	Weight           uint32 // zero is not given, and counts as one
	Rate             Rate   // limit of sending; zero is no limit
	MaxMessages      int64  // limit of ready messages; zero is no limit
	MaxBytes         int64  // limit of their bytes; zero is no limit
	Overflow         Overflow
	ExpectedRate     Rate // at which messages should be completed; zero is not known

	when *filter.Expr
}

// Objective states that a share of the messages is delivered within a time.
type Objective struct {
	Wait   time.Duration // zero is no objective
	Target float64       // between 0 and 1
}

// defaultTarget is the target of an objective that has none.
const defaultTarget = 0.95

// Overflow says what happens to a message that exceeds a limit.
type Overflow uint8

// The effects of a limit.
const (
	Reject Overflow = iota // the new message is rejected
	Evict                  // the oldest of the class is removed
)

var overflows = []string{"reject", "evict"}

// String returns the word that a policy uses.
func (s Overflow) String() string { return overflows[s] }

// Share has the weight and the limits of a fair key.
type Share struct {
	Key          string
	Weight       uint32 // turns in proportion to it; zero is unset, and counts as one
	Concurrency  uint32 // limit of messages in flight; zero is no limit
	Rate         Rate   // limit of sending; zero is no limit
	DeliveryRate Rate   // limit of delivery; zero is no limit
}

// Alerts says where changes of an objective's state are sent.
type Alerts struct {
	Webhook string
	Secret  string // signs what is sent to Webhook
}

// ClassName returns the name of a class by its number; empty for zero and for
// numbers that the policy does not have.
func (p *Policy) ClassName(class uint8) string {
	if c := p.Class(class); c != nil {
		return c.Name
	}
	return ""
}

// Class returns a class by its number, nil if there is none.
func (p *Policy) Class(n uint8) *Class {
	if n == 0 || int(n) > len(p.Classes) {
		return nil
	}
	return &p.Classes[n-1]
}

// Rank returns the level of a class. One without a fixed level counts as the default
// level, which most of its messages have.
func (c *Class) Rank() uint8 {
	if c.LevelFromMessage {
		return noPriority
	}
	return c.Level
}
