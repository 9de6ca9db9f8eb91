// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/Azure/go-amqp"
)

// SeqNo numbers the messages of one entity, in the order in which it took them.
type SeqNo int64

// Message is what is sent. The zero value is an empty message; every field is
// optional.
type Message struct {
	// ID names the message. Send fills it when it is empty, so that duplicate
	// detection recognises a message that was sent again after an outage.
	ID string
	// Body is the payload.
	Body []byte
	// Value is a payload of one AMQP value instead of bytes: a string, a
	// number, a map. It is used when Body is nil.
	Value any

	Priority Priority
	// Properties are the application properties: strings, numbers, booleans,
	// times.
	Properties map[string]any

	// Session makes the message one of a session. Entities that require
	// sessions refuse messages without.
	Session string
	// Subject, also called label, says in short what the message is about.
	Subject string
	// CorrelationID ties the message to another one; in a reply it is the ID of
	// the request.
	CorrelationID string
	ContentType   string
	To            string
	// ReplyTo is where an answer should go, ReplyToSession the session there.
	ReplyTo        string
	ReplyToSession string
	// PartitionKey keeps messages together on partitioned entities.
	PartitionKey string

	// TTL is how long the message is worth delivering; 0 means as long as the
	// entity keeps it.
	TTL time.Duration
	// ScheduleAt keeps the message out of sight until then.
	ScheduleAt time.Time
}

// State says why a peeked message is, or is not, available to receivers.
type State uint8

// The states, as the wire numbers them; they never change.
const (
	Active    State = 0
	Deferred  State = 1
	Scheduled State = 2
)

// String returns the state as a word.
func (s State) String() string {
	switch s {
	case Deferred:
		return "deferred"
	case Scheduled:
		return "scheduled"
	default:
		return "active"
	}
}

// Received is a message as it came, with what the broker knows about it. Its
// Message can be sent again as it is.
type Received struct {
	Message

	SeqNo    SeqNo
	Enqueued time.Time
	// Source is the queue or subscription that a receiver got it from.
	Source string
	// LockedUntil is when the lock runs out; [Receiver.RenewLock] moves it. It is
	// zero for messages that are not locked.
	LockedUntil time.Time
	// DeliveryCount is the number of earlier deliveries that failed, or ended by
	// deferring.
	DeliveryCount uint32
	// Level is that by which the queue served it, and Class that of the queue's
	// policy if it is in one. They are set where ReceiverOptions.TellLevel asks
	// for them; else Level is nil. Priority is what the sender asked for.
	Level *uint8
	Class string
	// Objective is how long messages of its class may wait, if the policy says so. It is
	// set with Class.
	Objective time.Duration
	// State is set by Peek.
	State State
	// RetryAt is set by Peek: until when a message that has failed waits; see
	// [Receiver.Retry].
	RetryAt time.Time

	// Of a dead letter: why it is one, and the entity it came from if it was
	// forwarded.
	DeadLetterReason      string
	DeadLetterDescription string
	DeadLetterSource      string

	raw   *amqp.Message // with its delivery; nil unless it came over a link
	link  *link         // the link it came over; nil unless raw is set
	token amqp.UUID     // the lock; zero when not locked
}

// LockRemaining returns how long the message is still locked, by this machine's clock:
// zero if it is not, or no more.
func (m *Received) LockRemaining() time.Duration {
	if m.LockedUntil.IsZero() {
		return 0
	}
	return max(0, time.Until(m.LockedUntil))
}

// DeadLetterQueue returns the address of an entity's dead letter queue.
func DeadLetterQueue(entity string) string { return entity + "/$DeadLetterQueue" }

// Subscription returns the address of a topic's subscription.
func Subscription(topic, name string) string { return topic + "/Subscriptions/" + name }
