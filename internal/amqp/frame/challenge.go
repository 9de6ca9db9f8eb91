// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Challenge is a question of a SASL mechanism [AMQP 5.3.3.3].
type Challenge struct {
	Challenge []byte
}

// Append appends c, descriptor included.
func (c *Challenge) Append(dst []byte) []byte {
	w := compose(dst, CodeChallenge)
	w.present(codec.AppendBinary(w.dst, c.Challenge))
	return w.close()
}

// Decode reads the fields of a sasl-challenge.
func (c *Challenge) Decode(r *codec.Reader) { c.Challenge = r.Binary() }
