// SPDX-License-Identifier: Apache-2.0

package frame

import "github.com/triagemq/triagemq/internal/amqp/codec"

// Error is an AMQP error [AMQP 2.8.14]. It is a Go error as well, so that code
// which decides about the error for a peer can return it like any other.
type Error struct {
	Condition   string
	Description string
	Info        []byte // an encoded map, nil when absent
}

// Error returns the condition and the description.
func (e *Error) Error() string {
	if e.Description == "" {
		return e.Condition
	}
	return e.Condition + ": " + e.Description
}

// Append appends e, descriptor included.
func (e *Error) Append(dst []byte) []byte {
	w := compose(dst, CodeError)
	w.present(codec.AppendSymbol(w.dst, e.Condition))
	w.string(e.Description)
	w.raw(e.Info)
	return w.close()
}

// Decode reads the fields of an error.
func (e *Error) Decode(r *codec.Reader) {
	e.Condition = r.Str()
	e.Description = r.Str()
	e.Info = rawMap(r)
}
