// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Response is the answer to a challenge [AMQP 5.3.3.4].
type Response struct {
	Response []byte
}

// Append appends s, descriptor included.
func (s *Response) Append(dst []byte) []byte {
	w := compose(dst, CodeResponse)
	w.present(codec.AppendBinary(w.dst, s.Response))
	return w.close()
}

// Decode reads the fields of a sasl-response.
func (s *Response) Decode(r *codec.Reader) { s.Response = r.Binary() }
