// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Parse takes the body of a frame apart: which performative it is, its fields to
// be decoded, and the payload behind it.
func Parse(body []byte) (code Code, fields codec.Reader, payload []byte, err error) {
	var r codec.Reader
	if len(body) > 3 && body[0] == 0x00 && body[1] == 0x53 {
		// Nearly all peers write the descriptor as a small number.
		code = Code(body[2])
		r = codec.NewReader(body[3:])
		fields = r.List()
	} else {
		r = codec.NewReader(body)
		var n uint64
		n, fields = r.Composite()
		code = Code(n)
	}
	return code, fields, r.Rest(), r.Err()
}
