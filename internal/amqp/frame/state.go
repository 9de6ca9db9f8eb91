// SPDX-License-Identifier: Apache-2.0

package frame

// StateKind names a delivery state.
type StateKind uint8

// The delivery states of the messaging layer [AMQP 3.4] and of transactions
// [AMQP 4.5]. StateUnknown is a state we were sent and do not know.
const (
	StateNone StateKind = iota
	StateReceived
	StateAccepted
	StateRejected
	StateReleased
	StateModified
	StateDeclared
	StateTransactional
	StateUnknown
)

// State is a delivery state. Only Kind is set for most; which other field goes
// with which kind is said at the field. A decoded State borrows from its frame.
type State struct {
	Kind              StateKind
	DeliveryFailed    bool     // modified
	UndeliverableHere bool     // modified
	Error             *Error   // rejected; nil when the peer gave no reason
	Annotations       []byte   // modified: an encoded map, nil when absent
	Section           *Section // received
	Transaction       *Transaction
}

// Section is how much of a delivery was received [AMQP 3.4.1].
type Section struct {
	Number uint32
	Offset uint64
}

// Transaction is what a declared or transactional state carries [AMQP 4.5.5,
// 4.5.8].
type Transaction struct {
	ID      []byte
	Outcome *State // transactional; nil when absent
}

// Accepted is the state of a delivery that was taken over [AMQP 3.4.2].
func Accepted() State { return State{Kind: StateAccepted} }

// Rejected is the state of a delivery that was turned down [AMQP 3.4.3]; err may
// be nil.
func Rejected(err *Error) State { return State{Kind: StateRejected, Error: err} }

// Released is the state of a delivery handed back untouched [AMQP 3.4.4].
func Released() State { return State{Kind: StateReleased} }
