// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrExceeded is what every [*Error] unwraps to.
var ErrExceeded = errors.New("limit exceeded")

// Error says that something is beyond a limit.
type Error struct {
	What string // "the session id"
	Got  int64
	Most int64
	Unit Unit
}

// Error says what was sent and what is allowed.
func (e *Error) Error() string {
	unit := ""
	if e.Unit != Count {
		unit = " " + string(e.Unit)
	}
	return fmt.Sprintf("%s: %d%s, at most %d are allowed", e.What, e.Got, unit, e.Most)
}

// Unwrap makes errors.Is(err, ErrExceeded) true.
func (e *Error) Unwrap() error { return ErrExceeded }

// CheckText returns an *Error if a text has more than most characters.
func CheckText(what, text string, most int) error {
	if len(text) <= most {
		return nil // there are no more characters than bytes
	}
	return check(what, utf8.RuneCountInString(text), most, Characters)
}

// CheckBytes returns an *Error if n bytes are more than most.
func CheckBytes(what string, n, most int) error { return check(what, n, most, Bytes) }

// CheckCount returns an *Error if n are more than most.
func CheckCount(what string, n, most int) error { return check(what, n, most, Count) }

func check(what string, n, most int, unit Unit) error {
	if n <= most {
		return nil
	}
	return &Error{What: what, Got: int64(n), Most: int64(most), Unit: unit}
}
