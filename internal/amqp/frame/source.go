// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Source is the terminus a link takes messages from [AMQP 3.5.3].
type Source struct {
	Address          string // empty means null
	Durable          uint32
	ExpiryPolicy     string // empty means the default, session-end
	Timeout          uint32 // seconds
	Dynamic          bool
	DynamicNode      []byte // dynamic-node-properties: an encoded map, nil when absent
	DistributionMode string // move, copy, or empty
	Filter           []byte // an encoded map, nil when absent
	DefaultOutcome   []byte // an encoded state, nil when absent
	Outcomes         []string
	Capabilities     []string
}

// Append appends s, descriptor included.
func (s *Source) Append(dst []byte) []byte {
	w := compose(dst, CodeSource)
	w.string(s.Address)
	w.uintUnless(s.Durable, 0)
	w.symbol(s.ExpiryPolicy)
	w.uintUnless(s.Timeout, 0)
	w.flag(s.Dynamic)
	w.raw(s.DynamicNode)
	w.symbol(s.DistributionMode)
	w.raw(s.Filter)
	w.raw(s.DefaultOutcome)
	w.symbols(s.Outcomes)
	w.symbols(s.Capabilities)
	return w.close()
}

// Decode reads the fields of a source.
func (s *Source) Decode(r *codec.Reader) {
	s.Address = r.Str()
	s.Durable = r.Uint()
	s.ExpiryPolicy = r.Str()
	s.Timeout = r.Uint()
	s.Dynamic = r.Bool()
	s.DynamicNode = rawMap(r)
	s.DistributionMode = r.Str()
	s.Filter = rawMap(r)
	s.DefaultOutcome = rawField(r)
	s.Outcomes = symbols(r)
	s.Capabilities = symbols(r)
}
