// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Close closes a connection [AMQP 2.7.9].
type Close struct {
	Error *Error
}

// Append appends c, descriptor included.
func (c *Close) Append(dst []byte) []byte {
	w := compose(dst, CodeClose)
	w.failure(c.Error)
	return w.close()
}

// Decode reads the fields of a close.
func (c *Close) Decode(r *codec.Reader) { c.Error = failure(r) }
