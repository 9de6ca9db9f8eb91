// SPDX-License-Identifier: Apache-2.0

package ordering

import (
	"slices"
	"time"
)

// Level is the priority of a message; a higher level is served first.
type Level uint8

// DefaultLevel is the level of a message without a priority, as in AMQP.
const DefaultLevel Level = 4

// Class is the number of the policy class a message was put in; zero is none.
type Class uint8

// Discipline is the rule by which the next message is chosen among the levels.
type Discipline uint8

// The disciplines. They are on disk and never change.
const (
	// Strict serves the highest level first, inside it the oldest, and switches to
	// the shares of Weighted while the queue is saturated by Order.Saturation.
	Strict Discipline = iota
	// Aging raises a message by one level for every Order.AgingInterval it waited, up to
	// Order.AgingMaxLevel; among equals the oldest is served first.
	Aging
	// Deadline serves the earliest enqueue time plus Order.Objective of its
	// level first. A level whose oldest message is late is served by its level:
	// after those above it, before those below. A level without an objective comes
	// after all that have one.
	Deadline
	// Weighted gives each level that has messages a share of the deliveries in
	// proportion to Order.Weight.
	Weighted
)

// Disciplines are their names, as a policy spells them, by number.
var Disciplines = []string{"strict", "aging", "deadline", "weighted"}

// String returns the name of the discipline.
func (d Discipline) String() string { return Disciplines[d] }

// LevelOrder is the order inside a level.
type LevelOrder uint8

// The orders inside a level. They are on disk and never change.
const (
	// Fifo serves the oldest first or, with fair keys, in round robin.
	Fifo LevelOrder = iota
	// Lifo serves the newest first. It is for levels that are not ranked by the age
	// of what is in them: with Aging, Deadline, Saturation.Oldest or fair keys it
	// is Fifo.
	Lifo
	// FinishFirst serves the fair keys that were started before those that were
	// not, in the order in which they were; the others, and messages without a
	// key, by age. A key is started when a message of it is delivered, until no
	// message of it is left in any state. Without fair keys it is Fifo.
	FinishFirst
)

// Withins are their names, as a policy spells them, by number.
var LevelOrders = []string{"fifo", "lifo", "finishFirst"}

// String returns the name of the order.
func (w LevelOrder) String() string { return LevelOrders[w] }

// Order says how the next message is chosen. The zero value is Strict.
type Order struct {
	Discipline    Discipline
	AgingInterval time.Duration   // Aging: wait that raises by one level; zero raises never
	AgingMaxLevel Level           // Aging: aging raises no message above it
	Objective     []time.Duration // Deadline: by level; missing or zero is none
	Weight        []uint32        // Weighted, and Strict when saturated: by level; missing or zero is one
	Saturation    Saturation      // Strict: when to switch to shares

	LevelOrder   LevelOrder // inside a level
	Fair         bool       // inside a level the fair keys are served in round robin
	DefaultShare Share      // Fair: of a key that Shares does not name
	Shares       []Share    // Fair: of single keys
}

// Equal reports whether two orders are the same.
func (o *Order) Equal(p *Order) bool {
	return o.Discipline == p.Discipline && o.AgingInterval == p.AgingInterval && o.AgingMaxLevel == p.AgingMaxLevel &&
		o.Saturation == p.Saturation && o.LevelOrder == p.LevelOrder && o.Fair == p.Fair && o.DefaultShare == p.DefaultShare &&
		slices.Equal(o.Objective, p.Objective) && slices.Equal(o.Weight, p.Weight) && slices.Equal(o.Shares, p.Shares)
}

// FinishesFirst reports whether fair keys that were started are served first.
func (o *Order) FinishesFirst() bool { return o.Fair && o.LevelOrder == FinishFirst }

// Share has the weight and the limits of a fair key.
type Share struct {
	Key    string
	Weight uint32  // turns in proportion to it; zero is one
	Cap    uint32  // limit of messages in flight; zero is no limit
	Rate   float64 // deliveries per second; zero is no limit
	Burst  uint32  // deliveries at once before Rate applies; zero is one
}

// Saturation says when a strict queue is saturated: it cannot keep up. Reaching either
// limit is enough; the zero value is never. It ends when both are at half of their
// limits or below, so that a queue near a limit does not switch at each message.
type Saturation struct {
	Waiting int64         // messages that are ready; zero is no limit
	Oldest  time.Duration // wait of the oldest that may be delivered; zero is no limit
}
