// SPDX-License-Identifier: Apache-2.0

package frame

// Target is the terminus a link puts messages into [AMQP 3.5.4].
type Target struct {
	Address      string // empty stands for null
	Durable      uint32
	ExpiryPolicy string // empty stands for the default, session-end
	Timeout      uint32 // seconds
	Dynamic      bool
	DynamicNode  []byte // dynamic-node-properties: an encoded map, nil when absent
	Capabilities []string
}

// Coordinator is the target of a link that controls transactions [AMQP 4.5.1].
type Coordinator struct {
	Capabilities []string
}
