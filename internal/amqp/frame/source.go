// SPDX-License-Identifier: Apache-2.0

package frame

// Source is the terminus a link takes messages from [AMQP 3.5.3].
type Source struct {
	Address          string // empty stands for null
	Durable          uint32
	ExpiryPolicy     string // empty stands for the default, session-end
	Timeout          uint32 // seconds
	Dynamic          bool
	DynamicNode      []byte // dynamic-node-properties: an encoded map, nil when absent
	DistributionMode string // move, copy, or empty
	Filter           []byte // an encoded map, nil when absent
	DefaultOutcome   []byte // an encoded state, nil when absent
	Outcomes         []string
	Capabilities     []string
}
