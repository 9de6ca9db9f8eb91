// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Transfer carries a delivery, or a part of one, on a link [AMQP 2.7.5]. The
// payload follows the performative in the frame.
type Transfer struct {
	Handle        uint32
	DeliveryID    uint32
	HasDeliveryID bool   // on the first transfer of a delivery
	DeliveryTag   []byte // nil when absent; on the first transfer of a delivery
	MessageFormat uint32 // with DeliveryTag
	Settled       bool
	More          bool // another transfer of this delivery follows
	State         State
	Resume        bool
	Aborted       bool // discard the frames of this delivery received so far
	Batchable     bool
}

// MaxTransfer is the most bytes that a frame header and an appended Transfer
// with a tag of the longest kind and no state take.
const MaxTransfer = HeaderSize + 3 + 3 + 5 + 5 + 2 + 32 + 5 + 1 + 1 + 5

// Append appends t, descriptor included. State, Resume and Batchable are the
// business of clients and are not written.
func (t *Transfer) Append(dst []byte) []byte {
	w := compose(dst, CodeTransfer)
	w.uint(t.Handle)
	if t.HasDeliveryID {
		w.uint(t.DeliveryID)
		w.present(codec.AppendBinary(w.dst, t.DeliveryTag))
		w.uint(t.MessageFormat)
		w.bool(t.Settled)
	} else {
		w.absent()
		w.absent()
		w.absent()
		w.absent()
	}
	w.flag(t.More)
	w.absent() // rcv-settle-mode
	w.absent() // state
	w.absent() // resume
	w.flag(t.Aborted)
	w.absent() // batchable
	return w.close()
}

// Decode reads the fields of a transfer.
func (t *Transfer) Decode(r *codec.Reader) {
	*t = Transfer{}
	mandatory(r, "handle")
	t.Handle = r.Uint()
	if t.HasDeliveryID = !r.Null(); t.HasDeliveryID {
		t.DeliveryID = r.Uint()
	}
	t.DeliveryTag = r.Binary()
	t.MessageFormat = r.Uint()
	t.Settled = r.Bool()
	if !r.More() {
		return // what a plain delivery has
	}
	t.More = r.Bool()
	r.Skip() // rcv-settle-mode: the link's is what counts
	t.State.Decode(r)
	t.Resume = r.Bool()
	t.Aborted = r.Bool()
	t.Batchable = r.Bool()
}
