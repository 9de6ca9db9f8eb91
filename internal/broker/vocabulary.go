// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Mode is how a receiver takes messages.
type Mode uint8

// The modes.
const (
	// PeekLock hands a message out under a lock, until it is settled.
	PeekLock Mode = iota
	// ReceiveAndDelete hands a message out for good.
	ReceiveAndDelete
)

// Verdict is what a consumer decides about a message.
type Verdict uint8

// The verdicts.
const (
	Complete Verdict = iota
	Abandon          // failed: counts toward the dead letters
	Release          // not started: does not count
	Defer
	DeadLetter
)

// Outcome settles a message.
type Outcome struct {
	Verdict     Verdict
	Reason      string // of a dead letter
	Description string // of a dead letter
	// Properties are merged into the application properties of a message that
	// is abandoned, deferred or dead-lettered.
	Properties []message.Property
}

// Delivery is a message handed to a receiver, or shown by a peek.
type Delivery struct {
	queue.Delivery
	// DeadLetterSource is the path of the entity a forwarded dead letter
	// came from.
	DeadLetterSource string

	msg  *message.Message // nil until loaded
	load func(queue.SeqNo, queue.Ref) (*message.Message, error)
}

// Message returns the message itself. It may read the disk, so it must not be
// called from a Sink's methods. ErrMessageNotFound means that the message was
// settled meanwhile: drop the delivery.
func (d *Delivery) Message() (*message.Message, error) {
	if d.msg != nil {
		return d.msg, nil
	}
	m, err := d.load(d.Seq, d.Body)
	if err != nil {
		return nil, err
	}
	d.msg = m
	return m, nil
}

// Sink is the receiving end of a link. Its methods are called in order, from the
// broker's own goroutines, and must return at once.
type Sink interface {
	// Deliver hands over messages; each uses one credit. The slice is the
	// sink's to keep.
	Deliver(ds []Delivery)
	// Drained answers Receiver.Drain: nothing more comes until new credit is
	// given.
	Drained()
	// Ended says that the receiver is over: its entity was deleted or
	// disabled, its session lock lost, or the broker is stopping.
	Ended(err error)
}

// ReceiverOptions are the wishes of a receiver.
type ReceiverOptions struct {
	Mode Mode
	Name string // for listings
	Sink Sink   // required
	// Session names the session to lock; nil is no session.
	Session *string
	// NextSession asks for the best free session instead.
	NextSession bool
	// MinLevel and MaxLevel restrict what the receiver is given; zero MaxLevel
	// is no limit.
	MinLevel, MaxLevel queue.Level
}

// SenderOptions are the facts about a sender that change how its messages are
// read.
type SenderOptions struct {
	// ZeroPriorityUnset is set for clients that write a header priority of zero
	// when their user chose none.
	ZeroPriorityUnset bool
}

// Counts are the messages of an entity by state.
type Counts struct {
	Active       int64 `json:"active"` // ready and locked
	Locked       int64 `json:"locked"`
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

// LevelCount is how many messages of a level wait, and since when the oldest.
type LevelCount struct {
	Level  queue.Level `json:"level"`
	Ready  int64       `json:"ready"`
	Oldest time.Time   `json:"oldest"`
}

// Runtime is what an entity is like at the moment.
type Runtime struct {
	Counts
	Levels     []LevelCount `json:"levels,omitempty"`
	Receivers  int          `json:"receivers"`
	CreatedAt  time.Time    `json:"createdAt"`
	UpdatedAt  time.Time    `json:"updatedAt"`
	AccessedAt time.Time    `json:"accessedAt"`
	// Subscriptions is the number of subscriptions of a topic.
	Subscriptions int `json:"subscriptions,omitempty"`
}
