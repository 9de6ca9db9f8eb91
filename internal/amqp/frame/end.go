// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// End ends a session [AMQP 2.7.8].
type End struct {
	Error *Error
}

// Append appends e, descriptor included.
func (e *End) Append(dst []byte) []byte {
	w := compose(dst, CodeEnd)
	w.failure(e.Error)
	return w.close()
}

// Decode reads the fields of an end.
func (e *End) Decode(r *codec.Reader) { e.Error = failure(r) }
