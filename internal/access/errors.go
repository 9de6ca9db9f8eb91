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
	// ErrSignature means that no key of an applicable rule matches the signature,
	// or that there is no such rule. A caller cannot find out which.
	ErrSignature = errors.New("access: invalid signature")
	// ErrExpired means that the token has expired.
	ErrExpired = errors.New("access: token is expired")
	// ErrRefused means that this method of authentication is not available here.
	ErrRefused = errors.New("access: not accepted here")
	// ErrRevoked means that the origin of a grant no longer exists: its rule, the
	// key, or the entity of the rule.
	ErrRevoked = errors.New("access: key was changed or removed")
)

// errInvalid means that rules cannot be accepted; the text around it lists every
// fault.
var errInvalid = errors.New("access: invalid rules")

// ExpiredError says when a token ended. It unwraps to ErrExpired.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("access: token expired at %s", e.At.UTC().Format(time.RFC3339))
}

func (e *ExpiredError) Unwrap() error { return ErrExpired }
