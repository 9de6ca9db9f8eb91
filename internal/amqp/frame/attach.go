// SPDX-License-Identifier: Apache-2.0

package frame

// Attach attaches a link to a session [AMQP 2.7.3].
type Attach struct {
	Name                 string
	Handle               uint32
	Role                 Role // of the peer that sends the attach
	SenderSettleMode     SenderSettleMode
	ReceiverSettleMode   ReceiverSettleMode
	Source               *Source
	Target               *Target
	Coordinator          *Coordinator // the target, when it is a coordinator
	Unsettled            []byte       // an encoded map, nil when absent
	IncompleteUnsettled  bool
	InitialDeliveryCount uint32
	MaxMessageSize       uint64 // zero for no limit
	OfferedCapabilities  []string
	DesiredCapabilities  []string
	Properties           []byte // an encoded map, nil when absent
}
