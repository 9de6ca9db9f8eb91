// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Mechanisms is the server's offer of SASL mechanisms [AMQP 5.3.3.1].
type Mechanisms struct {
	Server []string
}

// Append appends m, descriptor included.
func (m *Mechanisms) Append(dst []byte) []byte {
	w := compose(dst, CodeMechanisms)
	w.present(codec.AppendSymbolArray(w.dst, m.Server))
	return w.close()
}

// Decode reads the fields of a sasl-mechanisms.
func (m *Mechanisms) Decode(r *codec.Reader) { m.Server = symbols(r) }
