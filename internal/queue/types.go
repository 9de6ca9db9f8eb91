// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/binary"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/state"
)

// The identity and the states of a message are those of package entries.
type (
	// SeqNo numbers the messages of one queue, from 1, without gaps.
	SeqNo = entries.SeqNo
	// State is the state of a message.
	State = entries.State
)

// The states of a message, from package entries.
const (
	Ready     = entries.Ready
	Deferred  = entries.Deferred
	Scheduled = entries.Scheduled
	Locked    = entries.Locked
	Retrying  = entries.Retrying
)

// What commands and replay share is in package state.
type (
	// Counts are the messages of a queue by state, and their bytes.
	Counts = state.Counts
	// Classification is the new level, class and fair key of a message.
	Classification = state.Classification
)

// Config is what an operator decides about a queue.
type Config = record.Config

// The settings of an order are those of package ordering.
type (
	// Level is the priority of a message; a higher level is served first.
	Level = ordering.Level
	// Class is the number of the policy class a message was put in; zero is none.
	Class = ordering.Class
	// Discipline is the rule by which the next message is chosen among the levels.
	Discipline = ordering.Discipline
	// Order says how the next message is chosen. The zero value is Strict.
	Order = ordering.Order
	// Share is what a fair key may have.
	Share = ordering.Share
	// Saturation says when a strict queue is saturated.
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

// The counts of ready messages are from package order.
type (
	// LevelStat counts the ready messages of one level or class.
	LevelStat = order.LevelStat
	// Survey counts the ready messages of each level, in steps.
	Survey = order.Survey
)

// Ref says where the journal has a body and how long it is. The queue never reads it.
type Ref = machine.Ref

// Token proves that its holder has a message locked. Tokens of an earlier epoch
// of the queue are never valid again.
type Token struct {
	Seq   SeqNo
	Nonce uint64
}

// Bytes returns the token in the 16 bytes of the wire.
func (t Token) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], t.Nonce)
	binary.BigEndian.PutUint64(b[8:], uint64(t.Seq))
	return b
}

// TokenFrom is the inverse of Token.Bytes.
func TokenFrom(b [16]byte) Token {
	return Token{
		Nonce: binary.BigEndian.Uint64(b[:8]),
		Seq:   SeqNo(binary.BigEndian.Uint64(b[8:])),
	}
}

// Arrival is a message to be stored.
type Arrival struct {
	Body      Ref
	Level     Level
	Class     Class
	MessageID string        // for duplicate detection; empty is never a duplicate
	Session   string        // session the message belongs to
	InSession bool          // Session is set; the empty string is a real session
	Key       string        // fair key
	TTL       time.Duration // zero is the queue's own
	At        time.Time     // when it first arrived, if not now: a forwarded message keeps its arrival time
	OrderTime time.Time     // if earlier than its arrival: a reply has that of its request
	NotBefore time.Time     // zero, or past: at once
	Origin    SeqNo         // its sequence number in the entity it was first sent to, if not here
	Failures  uint32        // failed deliveries so far
	Hops      uint8         // forwards so far
	Reason    Ref           // of a dead letter: where its reason is stored; zero if the body has it, or none exists
}

// Delivery is a message that was delivered or peeked.
type Delivery struct {
	Token         Token // zero for a peek and for receive-and-delete
	Seq           SeqNo
	Origin        SeqNo
	Body          Ref
	Level         Level
	Class         Class
	State         State
	Deferred      bool   // if it is locked: it is deferred when the lock ends
	Failures      uint32 // deliveries so far that failed, or ended by deferring
	Hops          uint8
	FirstDelivery bool // not delivered before since this process has it in memory
	InSession     bool
	Session       string
	Key           string
	EnqueuedAt    time.Time
	OrderTime     time.Time // by which it is ordered; zero is EnqueuedAt
	LockedUntil   time.Time
	ExpiresAt     time.Time // zero is never
	NotBefore     time.Time // of a scheduled message, and of one that waits for a retry
	Reason        Ref       // of a dead letter: where its reason is stored beside the body; zero is none
	Saved         Ref       // where the state is stored that a consumer has saved; zero is none
}

// Size returns how many bytes the body has, with what is beside it.
func (d *Delivery) Size() int64 {
	return int64(d.Body.Size) + int64(d.Reason.Size) + int64(d.Saved.Size)
}

// TTL returns the time to live, from EnqueuedAt on; zero is without limit.
func (d *Delivery) TTL() time.Duration {
	if d.ExpiresAt.IsZero() {
		return 0
	}
	return max(d.ExpiresAt.Sub(d.EnqueuedAt), 1)
}

// Settled describes a message that was settled, for measurement.
type Settled struct {
	Seq          SeqNo
	Body         Ref
	Level        Level
	Class        Class
	Failures     uint32
	EnqueuedAt   time.Time
	LockedAt     time.Time
	DeadLettered bool // it became a dead letter
}

// DeadLetter is a message that became a dead letter. The owner of both queues enqueues it
// in the dead-letter queue in the same group of records.
type DeadLetter struct {
	Delivery
	Reason      string
	Description string
}

// Expired describes a message that expired and was removed without becoming a dead
// letter, for measurement.
type Expired struct {
	Seq           SeqNo
	Class         Class
	FirstDelivery bool // as in Delivery: it was never delivered
}

// TakeOptions are the conditions of a receiver on the next message.
type TakeOptions struct {
	Session          SessionLock // of a session receiver; zero otherwise
	MinLevel         Level
	MaxLevel         Level // zero is no limit, unless HasMaxLevel
	HasMaxLevel      bool  // MaxLevel is a limit even if it is zero
	ReceiveAndDelete bool  // the message is removed when it is taken
	DurableLock      bool  // the lock is durable from the beginning; not in sessions
}

// SessionLock proves that its holder has locked a session. The zero value is none.
type SessionLock struct {
	ID    string
	Nonce uint64
}

// The reasons of dead letters that the queue itself sets, in the words of Service Bus.
const (
	ReasonDeliveries = "MaxDeliveryCountExceeded"
	ReasonExpired    = "TTLExpiredException"
)
