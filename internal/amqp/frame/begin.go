// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"math"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

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

// Append appends b, descriptor included.
func (b *Begin) Append(dst []byte) []byte {
	w := compose(dst, CodeBegin)
	if b.HasRemoteChannel {
		w.present(codec.AppendUshort(w.dst, b.RemoteChannel))
	} else {
		w.absent()
	}
	w.uint(b.NextOutgoingID)
	w.uint(b.IncomingWindow)
	w.uint(b.OutgoingWindow)
	w.uintUnless(b.HandleMax, math.MaxUint32)
	w.symbols(b.OfferedCapabilities)
	w.symbols(b.DesiredCapabilities)
	w.raw(b.Properties)
	return w.close()
}

// Decode reads the fields of a begin.
func (b *Begin) Decode(r *codec.Reader) {
	b.HasRemoteChannel = !r.Null()
	if b.HasRemoteChannel {
		b.RemoteChannel = r.Ushort()
	}
	mandatory(r, "next-outgoing-id")
	b.NextOutgoingID = r.Uint()
	mandatory(r, "incoming-window")
	b.IncomingWindow = r.Uint()
	mandatory(r, "outgoing-window")
	b.OutgoingWindow = r.Uint()
	b.HandleMax = uintOr(r, math.MaxUint32)
	b.OfferedCapabilities = symbols(r)
	b.DesiredCapabilities = symbols(r)
	b.Properties = rawMap(r)
}
