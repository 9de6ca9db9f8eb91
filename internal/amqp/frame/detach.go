// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Detach detaches a link from its session [AMQP 2.7.7].
type Detach struct {
	Handle uint32
	Closed bool // the link is closed, not only suspended
	Error  *Error
}

// Append appends d, descriptor included.
func (d *Detach) Append(dst []byte) []byte {
	w := compose(dst, CodeDetach)
	w.uint(d.Handle)
	w.flag(d.Closed)
	w.failure(d.Error)
	return w.close()
}

// Decode reads the fields of a detach.
func (d *Detach) Decode(r *codec.Reader) {
	mandatory(r, "handle")
	d.Handle = r.Uint()
	d.Closed = r.Bool()
	d.Error = failure(r)
}
