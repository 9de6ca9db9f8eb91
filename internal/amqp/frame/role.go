// SPDX-License-Identifier: Apache-2.0

package frame

// Role says which end of a link a peer plays. On the wire it is a boolean
// [AMQP 2.8.1].
type Role bool

// The two roles of a link endpoint.
const (
	Sender   Role = false
	Receiver Role = true
)

// String returns the specification's word for the role.
func (r Role) String() string {
	if r == Receiver {
		return "receiver"
	}
	return "sender"
}

// SenderSettleMode is how a sender settles what it sends [AMQP 2.8.2].
type SenderSettleMode uint8

// The sender settle modes. Mixed is the default of the specification.
const (
	SenderUnsettled SenderSettleMode = 0
	SenderSettled   SenderSettleMode = 1
	SenderMixed     SenderSettleMode = 2
)

// ReceiverSettleMode is when a receiver settles what it got [AMQP 2.8.3].
type ReceiverSettleMode uint8

// The receiver settle modes. ReceiverFirst is the default of the specification.
const (
	ReceiverFirst  ReceiverSettleMode = 0 // settles on its own
	ReceiverSecond ReceiverSettleMode = 1 // settles after the sender has
)
