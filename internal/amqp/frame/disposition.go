// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Disposition updates the state of a range of deliveries [AMQP 2.7.6].
type Disposition struct {
	Role      Role // of the peer that sends the disposition
	First     uint32
	Last      uint32 // the same as First for a single delivery
	Settled   bool
	State     State
	Batchable bool
}

// Append appends d, descriptor included.
func (d *Disposition) Append(dst []byte) []byte {
	w := compose(dst, CodeDisposition)
	w.bool(bool(d.Role))
	w.uint(d.First)
	w.uintUnless(d.Last, d.First)
	w.bool(d.Settled)
	w.state(&d.State)
	w.flag(d.Batchable)
	return w.close()
}

// Decode reads the fields of a disposition.
func (d *Disposition) Decode(r *codec.Reader) {
	mandatory(r, "role")
	d.Role = Role(r.Bool())
	mandatory(r, "first")
	d.First = r.Uint()
	d.Last = uintOr(r, d.First)
	d.Settled = r.Bool()
	d.State.Decode(r)
	d.Batchable = r.Bool()
}
