// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

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

// State is a delivery state. Only Kind is set for most; each other field says
// for which kind it is. A decoded State shares the bytes of its frame.
type State struct {
	Kind              StateKind
	DeliveryFailed    bool     // modified
	UndeliverableHere bool     // modified
	Error             *Error   // rejected; nil if the peer sent no reason
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

// Released is the state of a delivery that is returned unprocessed [AMQP
// 3.4.4].
func Released() State { return State{Kind: StateReleased} }

// Append appends s, descriptor included; StateNone and StateUnknown are null.
func (s *State) Append(dst []byte) []byte {
	var w writer
	switch s.Kind {
	case StateAccepted:
		w = compose(dst, CodeAccepted)
	case StateReleased:
		w = compose(dst, CodeReleased)
	case StateRejected:
		w = compose(dst, CodeRejected)
		w.failure(s.Error)
	case StateModified:
		w = compose(dst, CodeModified)
		w.flag(s.DeliveryFailed)
		w.flag(s.UndeliverableHere)
		w.raw(s.Annotations)
	case StateReceived:
		w = compose(dst, CodeReceived)
		w.uint(s.Section.Number)
		w.ulong(s.Section.Offset)
	case StateDeclared:
		w = compose(dst, CodeDeclared)
		w.present(codec.AppendBinary(w.dst, s.Transaction.ID))
	case StateTransactional:
		w = compose(dst, CodeTransactional)
		w.present(codec.AppendBinary(w.dst, s.Transaction.ID))
		w.state(s.Transaction.Outcome)
	default:
		return codec.AppendNull(dst)
	}
	return w.close()
}

// Decode reads a state, which is one field; absent is StateNone.
func (s *State) Decode(r *codec.Reader) { s.decode(r, 1) }

// decode reads a state that may contain other states, up to nested levels deep.
func (s *State) decode(r *codec.Reader, nested int) {
	*s = State{}
	if r.Null() {
		return
	}
	if b := r.Rest(); len(b) >= 4 && b[0] == 0x00 && b[1] == 0x53 && b[2] == byte(CodeAccepted) && b[3] == 0x45 {
		s.Kind = StateAccepted // what most are, without the detour
		r.Skip()
		return
	}
	code, f := r.Composite()
	switch Code(code) {
	case CodeAccepted:
		s.Kind = StateAccepted
	case CodeReleased:
		s.Kind = StateReleased
	case CodeRejected:
		s.Kind = StateRejected
		s.Error = failure(&f)
	case CodeModified:
		s.Kind = StateModified
		s.DeliveryFailed = f.Bool()
		s.UndeliverableHere = f.Bool()
		s.Annotations = rawMap(&f)
	case CodeReceived:
		s.Kind = StateReceived
		s.Section = &Section{Number: f.Uint(), Offset: f.Ulong()}
	case CodeDeclared:
		s.Kind = StateDeclared
		s.Transaction = &Transaction{ID: f.Binary()}
	case CodeTransactional:
		s.Kind = StateTransactional
		s.Transaction = &Transaction{ID: f.Binary()}
		if nested > 0 && !f.Null() {
			s.Transaction.Outcome = new(State)
			s.Transaction.Outcome.decode(&f, nested-1)
		}
	default:
		s.Kind = StateUnknown
	}
	r.Fail(f.Err())
}
