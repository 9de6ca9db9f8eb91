// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Flow updates the state of a session and, with a handle, of a link
// [AMQP 2.7.4]. Session fields are always written; clients need all of them.
type Flow struct {
	NextIncomingID    uint32
	HasNextIncomingID bool // false only before the peer's begin was seen
	IncomingWindow    uint32
	NextOutgoingID    uint32
	OutgoingWindow    uint32

	Handle           uint32
	HasHandle        bool // the fields below belong to this link
	DeliveryCount    uint32
	HasDeliveryCount bool
	LinkCredit       uint32
	HasLinkCredit    bool
	Available        uint32
	Drain            bool
	Echo             bool
	Properties       []byte // an encoded map, nil when absent
}

// Append appends f, descriptor included.
func (f *Flow) Append(dst []byte) []byte {
	w := compose(dst, CodeFlow)
	w.uintIf(f.HasNextIncomingID, f.NextIncomingID)
	w.uint(f.IncomingWindow)
	w.uint(f.NextOutgoingID)
	w.uint(f.OutgoingWindow)
	w.uintIf(f.HasHandle, f.Handle)
	w.uintIf(f.HasDeliveryCount, f.DeliveryCount)
	w.uintIf(f.HasLinkCredit, f.LinkCredit)
	w.uintUnless(f.Available, 0)
	w.flag(f.Drain)
	w.flag(f.Echo)
	w.raw(f.Properties)
	return w.close()
}

// Decode reads the fields of a flow.
func (f *Flow) Decode(r *codec.Reader) {
	*f = Flow{}
	if f.HasNextIncomingID = !r.Null(); f.HasNextIncomingID {
		f.NextIncomingID = r.Uint()
	}
	mandatory(r, "incoming-window")
	f.IncomingWindow = r.Uint()
	mandatory(r, "next-outgoing-id")
	f.NextOutgoingID = r.Uint()
	mandatory(r, "outgoing-window")
	f.OutgoingWindow = r.Uint()
	if f.HasHandle = !r.Null(); f.HasHandle {
		f.Handle = r.Uint()
	}
	if f.HasDeliveryCount = !r.Null(); f.HasDeliveryCount {
		f.DeliveryCount = r.Uint()
	}
	if f.HasLinkCredit = !r.Null(); f.HasLinkCredit {
		f.LinkCredit = r.Uint()
	}
	f.Available = r.Uint()
	f.Drain = r.Bool()
	f.Echo = r.Bool()
	f.Properties = rawMap(r)
}
