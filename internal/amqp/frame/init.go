// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Init is the client's choice of a SASL mechanism [AMQP 5.3.3.2].
type Init struct {
	Mechanism   string
	Response    []byte // initial-response
	HasResponse bool   // an empty response is one
	Hostname    string
}

// Append appends i, descriptor included.
func (i *Init) Append(dst []byte) []byte {
	w := compose(dst, CodeInit)
	w.present(codec.AppendSymbol(w.dst, i.Mechanism))
	if i.HasResponse {
		w.present(codec.AppendBinary(w.dst, i.Response))
	} else {
		w.absent()
	}
	w.string(i.Hostname)
	return w.close()
}

// Decode reads the fields of a sasl-init.
func (i *Init) Decode(r *codec.Reader) {
	mandatory(r, "mechanism")
	i.Mechanism = r.Str()
	i.Response = nil
	if i.HasResponse = !r.Null(); i.HasResponse {
		i.Response = r.Binary()
	}
	i.Hostname = r.Str()
}
