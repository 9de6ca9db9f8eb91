// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"fmt"
	"time"
)

// Errors of checking a token or a login.
var (
	// ErrMalformed means that the token is not in the form of one.
	ErrMalformed = errors.New("access: malformed token")
	// ErrSignature means that no key of a rule that applies has made the
	// signature, or that there is no such rule: a caller cannot tell which.
	ErrSignature = errors.New("access: invalid signature")
	// ErrExpired means that the token was good once.
	ErrExpired = errors.New("access: token is expired")
	// ErrRefused means that this way of proving who one is is not open here.
	ErrRefused = errors.New("access: not accepted here")
	// ErrRevoked means that what gave a grant is gone: its rule, the key, or the
	// entity that the rule was of.
	ErrRevoked = errors.New("access: key was changed or removed")
)

// ErrInvalid means that rules cannot be accepted; the text around it lists every
// fault.
var ErrInvalid = errors.New("access: invalid rules")

// ExpiredError says when a token ended. It unwraps to ErrExpired.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("access: token expired at %s", e.At.UTC().Format(time.RFC3339))
}

func (e *ExpiredError) Unwrap() error { return ErrExpired }
