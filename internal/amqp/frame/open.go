// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"math"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

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

// Append appends o, descriptor included.
func (o *Open) Append(dst []byte) []byte {
	w := compose(dst, CodeOpen)
	w.present(codec.AppendString(w.dst, o.ContainerID))
	w.string(o.Hostname)
	w.uintUnless(o.MaxFrameSize, math.MaxUint32)
	if o.ChannelMax == math.MaxUint16 {
		w.absent()
	} else {
		w.present(codec.AppendUshort(w.dst, o.ChannelMax))
	}
	w.uintUnless(o.IdleTimeout, 0)
	w.absent() // outgoing-locales
	w.absent() // incoming-locales
	w.symbols(o.OfferedCapabilities)
	w.symbols(o.DesiredCapabilities)
	w.raw(o.Properties)
	return w.close()
}

// Decode reads the fields of an open.
func (o *Open) Decode(r *codec.Reader) {
	o.ContainerID = r.Str()
	o.Hostname = r.Str()
	o.MaxFrameSize = uintOr(r, math.MaxUint32)
	o.ChannelMax = math.MaxUint16
	if !r.Null() {
		o.ChannelMax = r.Ushort()
	}
	o.IdleTimeout = r.Uint()
	r.Skip() // outgoing-locales
	r.Skip() // incoming-locales
	o.OfferedCapabilities = symbols(r)
	o.DesiredCapabilities = symbols(r)
	o.Properties = rawMap(r)
}
