// SPDX-License-Identifier: Apache-2.0

package frame

// Begin starts a session on a channel [AMQP 2.7.2].
type Begin struct {
	RemoteChannel       uint16
	HasRemoteChannel    bool // set in the answer to a begin
	NextOutgoingID      uint32
	IncomingWindow      uint32
	OutgoingWindow      uint32
	HandleMax           uint32
	OfferedCapabilities []string
	DesiredCapabilities []string
	Properties          []byte // an encoded map, nil when absent
}
