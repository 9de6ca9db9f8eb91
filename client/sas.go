// SPDX-License-Identifier: Apache-2.0

package client

import (
	"time"

	"github.com/triagemq/triagemq/internal/sas"
)

// tokenLife is how long a token that we make is good, and tokenRefresh when it
// is replaced: early enough that a refresh may fail a few times.
const (
	tokenLife    = time.Hour
	tokenRefresh = tokenLife / 2
)

// token returns a shared access signature for the audience and when it expires.
// A ready-made one has an expiry that only its maker knows: zero.
func (t target) token(audience string, now time.Time) (token string, expires time.Time) {
	if t.signature != "" {
		return t.signature, time.Time{}
	}
	expires = now.Add(tokenLife)
	return sas.Sign(audience, t.keyName, t.key, expires), expires
}
