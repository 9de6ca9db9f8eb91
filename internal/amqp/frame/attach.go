// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

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

// Append appends a, descriptor included. Settle modes are always written: peers
// compare them with what they requested.
func (a *Attach) Append(dst []byte) []byte {
	w := compose(dst, CodeAttach)
	w.present(codec.AppendString(w.dst, a.Name))
	w.uint(a.Handle)
	w.bool(bool(a.Role))
	w.present(codec.AppendUbyte(w.dst, uint8(a.SenderSettleMode)))
	w.present(codec.AppendUbyte(w.dst, uint8(a.ReceiverSettleMode)))
	if a.Source == nil {
		w.absent()
	} else {
		w.present(a.Source.Append(w.dst))
	}
	switch {
	case a.Coordinator != nil:
		w.present(a.Coordinator.Append(w.dst))
	case a.Target != nil:
		w.present(a.Target.Append(w.dst))
	default:
		w.absent()
	}
	w.raw(a.Unsettled)
	w.flag(a.IncompleteUnsettled)
	if a.Role == Sender {
		w.uint(a.InitialDeliveryCount) // mandatory from a sender
	} else {
		w.absent()
	}
	if a.MaxMessageSize == 0 {
		w.absent()
	} else {
		w.ulong(a.MaxMessageSize)
	}
	w.symbols(a.OfferedCapabilities)
	w.symbols(a.DesiredCapabilities)
	w.raw(a.Properties)
	return w.close()
}

// Decode reads the fields of an attach.
func (a *Attach) Decode(r *codec.Reader) {
	mandatory(r, "name")
	a.Name = r.Str()
	mandatory(r, "handle")
	a.Handle = r.Uint()
	mandatory(r, "role")
	a.Role = Role(r.Bool())
	a.SenderSettleMode = SenderMixed
	if !r.Null() {
		a.SenderSettleMode = min(SenderSettleMode(r.Ubyte()), SenderMixed)
	}
	a.ReceiverSettleMode = min(ReceiverSettleMode(r.Ubyte()), ReceiverSecond)
	a.decodeSource(r)
	a.decodeTarget(r)
	a.Unsettled = rawMap(r)
	a.IncompleteUnsettled = r.Bool()
	a.InitialDeliveryCount = r.Uint()
	a.MaxMessageSize = r.Ulong()
	a.OfferedCapabilities = symbols(r)
	a.DesiredCapabilities = symbols(r)
	a.Properties = rawMap(r)
}

func (a *Attach) decodeSource(r *codec.Reader) {
	if r.Null() {
		return
	}
	code, fields := r.Composite()
	if Code(code) != CodeSource {
		r.Fail(fmt.Errorf("frame: want a source, found descriptor 0x%02x", code))
		return
	}
	a.Source = new(Source)
	a.Source.Decode(&fields)
	r.Fail(fields.Err())
}

func (a *Attach) decodeTarget(r *codec.Reader) {
	if r.Null() {
		return
	}
	code, fields := r.Composite()
	switch Code(code) {
	case CodeTarget:
		a.Target = new(Target)
		a.Target.Decode(&fields)
	case CodeCoordinator:
		a.Coordinator = new(Coordinator)
		a.Coordinator.Decode(&fields)
	default:
		r.Fail(fmt.Errorf("frame: want a target, found descriptor 0x%02x", code))
	}
	r.Fail(fields.Err())
}
