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

// Policy is what an operator decided about the worth of the messages of one
// queue. It never changes after Parse and may be shared by goroutines. The zero
// value is the policy of a plain queue: strict, without classes or limits.
type Policy struct {
	Revision    int64 // counts the changes; given by whoever stores it
	Discipline  ordering.Discipline
	Aging       Lift // for the discipline of that name
	Saturation  ordering.Saturation
	Within      ordering.Within // the order inside a level
	FairKey     string          // an expression; empty means that nobody takes turns
	Keys        []Share         // of single fair keys
	KeyDefaults Share           // of all other fair keys
	Watermarks  Depth           // from which on the lowest are turned away; zero is none
	Classes     []Class         // the first that takes a message has it
	Alerts      Alerts

	fairKey *filter.Expr
	rules   *filter.RuleSet // the conditions of the classes; nil without classes
}

// Lift says how waiting lifts a message.
type Lift struct {
	Every time.Duration // wait that lifts by one level
	UpTo  uint8         // no message rises above it by waiting
}

// Class is a kind of message that the operator gave a name and a worth.
type Class struct {
	Name      string
	Level     uint8
	OwnLevel  bool // Level is not given: a message keeps the one it asks for
	When      string
	Objective Objective
	Weight    uint32 // zero is not given, and counts as one
	Rate      Rate   // at which messages may come in; zero is any
	Limit     int64  // messages that may wait; zero is any number
	Bytes     int64  // that may wait; zero is any number
	Shed      Shed
	Expected  Rate // at which messages should be worked off; zero is not known

	when *filter.Expr
}

// Objective is the promise that a share of the messages starts within a time.
type Objective struct {
	Wait  time.Duration // zero is no objective
	Share float64       // between 0 and 1
}

// DefaultShare is the share of an objective that names none.
const DefaultShare = 0.95

// Shed says what happens when there is no room for a message.
type Shed uint8

// What can happen when there is no room.
const (
	Refuse Shed = iota // the new message is turned away
	Evict              // the oldest of the class makes room
)

var sheds = []string{"refuse", "evict"}

// String returns the word that a policy uses.
func (s Shed) String() string { return sheds[s] }

// Share is what a fair key may have.
type Share struct {
	Key         string
	Weight      uint32 // turns in proportion to it; zero is not given, and counts as one
	Concurrency uint32 // messages in flight at a time; zero is any number
	Rate        Rate   // at which messages may come in; zero is any
	Pace        Rate   // at which messages are handed out; zero is any
}

// Alerts says who is told when the state of an objective changes.
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
