// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Target is the terminus a link puts messages into [AMQP 3.5.4].
type Target struct {
	Address      string // empty means null
	Durable      uint32
	ExpiryPolicy string // empty means the default, session-end
	Timeout      uint32 // seconds
	Dynamic      bool
	DynamicNode  []byte // dynamic-node-properties: an encoded map, nil when absent
	Capabilities []string
}

// Append appends t, descriptor included.
func (t *Target) Append(dst []byte) []byte {
	w := compose(dst, CodeTarget)
	w.string(t.Address)
	w.uintUnless(t.Durable, 0)
	w.symbol(t.ExpiryPolicy)
	w.uintUnless(t.Timeout, 0)
	w.flag(t.Dynamic)
	w.raw(t.DynamicNode)
	w.symbols(t.Capabilities)
	return w.close()
}

// Decode reads the fields of a target.
func (t *Target) Decode(r *codec.Reader) {
	t.Address = r.Str()
	t.Durable = r.Uint()
	t.ExpiryPolicy = r.Str()
	t.Timeout = r.Uint()
	t.Dynamic = r.Bool()
	t.DynamicNode = rawMap(r)
	t.Capabilities = symbols(r)
}
