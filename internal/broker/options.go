// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Mode is how a receiver takes messages.
type Mode uint8

// The modes.
const (
	// PeekLock delivers a message under a lock, until it is settled.
	PeekLock Mode = iota
	// ReceiveAndDelete removes a message when it is delivered.
	ReceiveAndDelete
)

// Delivery is a message that was delivered or peeked.
type Delivery = queueserver.Delivery

// Sink is the receiving end of a link. Its methods are called in order, from the broker's
// own goroutines, and must not block.
type Sink = queueserver.Sink

// ReceiverOptions are the settings of a receiver.
type ReceiverOptions struct {
	Mode Mode
	Name string // for listings
	Sink Sink   // required
	// Session names the session to lock; nil is no session.
	Session *string
	// NextSession asks for the best free session instead.
	NextSession bool
	// MinLevel and MaxLevel restrict the levels that the receiver gets; zero MaxLevel is no
	// limit, unless HasMaxLevel.
	MinLevel, MaxLevel queue.Level
	HasMaxLevel        bool
	// MinClass and MaxClass do the same by classes of the queue's policy, or by the names
	// that levels have without one: they are resolved when the receiver is opened.
	MinClass, MaxClass string

	// Recall says that the receiver releases messages that it has not started, on request:
	// its Sink must be a queueserver.Recaller.
	Recall bool
	// DurableLocks makes the locks of its messages survive a restart from the beginning. It
	// is not for sessions.
	DurableLocks bool

	probing bool // see queueserver.Attachment
}

// take resolves the names of classes.
func (o *ReceiverOptions) take(p *policy.Policy) (queue.TakeOptions, error) {
	w := queue.TakeOptions{
		MinLevel: o.MinLevel, MaxLevel: o.MaxLevel, HasMaxLevel: o.HasMaxLevel,
		ReceiveAndDelete: o.Mode == ReceiveAndDelete, DurableLock: o.DurableLocks,
	}
	if o.MinClass != "" {
		level, err := levelOf(p, o.MinClass)
		if err != nil {
			return w, err
		}
		w.MinLevel = max(w.MinLevel, level)
	}
	if o.MaxClass != "" {
		level, err := levelOf(p, o.MaxClass)
		if err != nil {
			return w, err
		}
		if w.MaxLevel == 0 && !w.HasMaxLevel || level < w.MaxLevel {
			w.MaxLevel, w.HasMaxLevel = level, true
		}
	}
	return w, nil
}

// levelOf returns the level of a class, or of the name of a level.
func levelOf(p *policy.Policy, name string) (queue.Level, error) {
	for _, c := range p.Classes {
		switch {
		case !strings.EqualFold(c.Name, name):
		case c.LevelFromMessage:
			return 0, fmt.Errorf("%w: class %q has no fixed level; use a level or another class", ErrInvalid, c.Name)
		default:
			return queue.Level(c.Level), nil
		}
	}
	if level, ok := policy.ParseLevel(name); ok {
		return queue.Level(level), nil
	}
	return 0, fmt.Errorf("%w: the policy has no class %q", ErrInvalid, name)
}

// SenderOptions are properties of a sender that change how its messages are read.
type SenderOptions struct {
	// ZeroPriorityUnset is set for clients that write a header priority of zero
	// when their user chose none.
	ZeroPriorityUnset bool
	// Key names the key of the sender. Its messages can be replies to requests that were
	// delivered to the same key.
	Key string
	// Unsynced is charged with what a batch takes beyond what the function Unsynced says;
	// see catalog.SendOptions. Nil is no account.
	Unsynced *budget.Account
}

// Counts are the messages of an entity by state.
type Counts struct {
	Active       int64 `json:"active"` // ready, locked and retrying
	Locked       int64 `json:"locked"`
	Retrying     int64 `json:"retrying"` // have failed, and wait until a time
	Deferred     int64 `json:"deferred"`
	Scheduled    int64 `json:"scheduled"`
	Dead         int64 `json:"deadLetter"`
	Transfer     int64 `json:"transfer"`
	TransferDead int64 `json:"transferDeadLetter"`
	Bytes        int64 `json:"sizeInBytes"`
}

// Total is the number of messages in the entity and its dead letters.
func (c Counts) Total() int64 {
	return c.Active + c.Deferred + c.Scheduled + c.Dead + c.Transfer + c.TransferDead
}

// LevelCount is how many messages of a level are ready, and the age of the oldest.
type LevelCount struct {
	Level  queue.Level `json:"level"`
	Ready  int64       `json:"ready"`
	Oldest time.Time   `json:"oldest"`
}

// Runtime has the counts and times of an entity.
type Runtime struct {
	Counts
	Levels     []LevelCount `json:"levels,omitempty"`
	Receivers  int          `json:"receivers"`
	CreatedAt  time.Time    `json:"createdAt"`
	UpdatedAt  time.Time    `json:"updatedAt"`
	AccessedAt time.Time    `json:"accessedAt"`
	// Subscriptions is the number of subscriptions of a topic.
	Subscriptions int `json:"subscriptions,omitempty"`
	// UnknownPriorities counts the messages since the start with a property Priority that is
	// no level and that no class has matched.
	UnknownPriorities uint64 `json:"-"`
}
