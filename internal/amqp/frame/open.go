// SPDX-License-Identifier: Apache-2.0

package frame

// Open negotiates the parameters of a connection [AMQP 2.7.1].
type Open struct {
	ContainerID         string
	Hostname            string
	MaxFrameSize        uint32 // 4294967295 when the peer sets no limit
	ChannelMax          uint16
	IdleTimeout         uint32 // milliseconds, zero for none
	OfferedCapabilities []string
	DesiredCapabilities []string
	Properties          []byte // an encoded map, nil when absent
}
