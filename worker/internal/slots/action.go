// SPDX-License-Identifier: Apache-2.0

package slots

// ID names a message that the machine was told of. IDs are not used again.
type ID uint64

// Channel is a way to ask the broker for messages. At most one request is in flight
// on each.
type Channel uint8

// The channels.
const (
	// Main waits for any message, for free slots.
	Main Channel = iota
	// Urgent waits for one message above a bound, while tasks below it run.
	Urgent
	// Poll takes what is there above a bound, and does not wait.
	Poll
	// Channels is their number.
	Channels
)

// Kind is what to do.
type Kind uint8

// The kinds of actions.
const (
	// Start runs the handler of message ID.
	Start Kind = iota
	// Refuse hands message ID back: there is no slot for it.
	Refuse
	// Suspend has task ID wait in place. Its answer is Parked with the same Turn.
	Suspend
	// Cancel ends the context of task ID because it is preempted.
	Cancel
	// Resume lets task ID go on, or withdraws Suspend if it did not wait yet.
	Resume
	// Ask requests up to N messages on Channel, above Bound unless it is Main. Its
	// answer is Fetched.
	Ask
	// StopAsking ends the request on Channel early. Fetched still follows.
	StopAsking
)

// Action is something to do, in the order given.
type Action struct {
	Kind    Kind
	ID      ID
	Turn    uint32
	Channel Channel
	N       int
	Bound   Rank
	// Preempted says that Suspend or Cancel is for a more urgent message.
	Preempted bool
	// Overdue says that Ask is for messages that are too old to wait while the machine
	// holds. It takes what is there, and does not wait.
	Overdue bool
}
