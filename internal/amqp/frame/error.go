// SPDX-License-Identifier: Apache-2.0

package frame

// Error is an AMQP error [AMQP 2.8.14]. It is a Go error as well, so that code
// which decides what a peer is told can return it like any other.
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
