// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/queue"
)

// maxName is how many characters a name may have that the broker keeps in memory
// and repeats in its records for each message: session ids, message ids where
// duplicates are detected, fair keys. It is the cloud's limit for its own.
const maxName = 128

// checkName refuses a name that is too long.
func checkName(what, name string) error {
	if len(name) > maxName && utf8.RuneCountInString(name) > maxName {
		return fmt.Errorf("%w: the %s has %d characters; at most %d are allowed", ErrInvalid, what, utf8.RuneCountInString(name), maxName)
	}
	return nil
}

// checkNames refuses an arrival with names that are too long.
func checkNames(a *queue.Arrival) error {
	if len(a.Session) <= maxName && len(a.Key) <= maxName && len(a.MessageID) <= maxName {
		return nil
	}
	return cmp.Or(checkName("session id", a.Session), checkName("fair key", a.Key), checkName("message id", a.MessageID))
}
