// SPDX-License-Identifier: Apache-2.0

package frame

import "fmt"

// Code is the descriptor of a performative or of a structure inside of one. The
// numbers are on the wire and never change.
type Code uint64

// Descriptors [AMQP 2.7, 2.8.14, 3.4, 3.5, 4.5, 5.3.3].
const (
	CodeOpen        Code = 0x10
	CodeBegin       Code = 0x11
	CodeAttach      Code = 0x12
	CodeFlow        Code = 0x13
	CodeTransfer    Code = 0x14
	CodeDisposition Code = 0x15
	CodeDetach      Code = 0x16
	CodeEnd         Code = 0x17
	CodeClose       Code = 0x18

	CodeError         Code = 0x1d
	CodeReceived      Code = 0x23
	CodeAccepted      Code = 0x24
	CodeRejected      Code = 0x25
	CodeReleased      Code = 0x26
	CodeModified      Code = 0x27
	CodeSource        Code = 0x28
	CodeTarget        Code = 0x29
	CodeCoordinator   Code = 0x30
	CodeDeclared      Code = 0x33
	CodeTransactional Code = 0x34

	CodeMechanisms Code = 0x40
	CodeInit       Code = 0x41
	CodeChallenge  Code = 0x42
	CodeResponse   Code = 0x43
	CodeOutcome    Code = 0x44
)

// String returns the specification's word for a performative.
func (c Code) String() string {
	switch c {
	case CodeOpen:
		return "open"
	case CodeBegin:
		return "begin"
	case CodeAttach:
		return "attach"
	case CodeFlow:
		return "flow"
	case CodeTransfer:
		return "transfer"
	case CodeDisposition:
		return "disposition"
	case CodeDetach:
		return "detach"
	case CodeEnd:
		return "end"
	case CodeClose:
		return "close"
	case CodeMechanisms:
		return "sasl-mechanisms"
	case CodeInit:
		return "sasl-init"
	case CodeChallenge:
		return "sasl-challenge"
	case CodeResponse:
		return "sasl-response"
	case CodeOutcome:
		return "sasl-outcome"
	}
	return fmt.Sprintf("0x%02x", uint64(c))
}
