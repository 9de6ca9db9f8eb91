// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/entity"
)

// minKey is how many characters a key has at least. Nothing but its length protects a
// key: there is no limit on how often a login may fail.
const minKey = 16

// Trusting reports whether programs on this machine are let in without a key, and
// nobody else is.
func (s Security) Trusting() bool { return s.Dev && !s.AllowRemote }

// KeyFaults reports the keys that are too short. In development any will do, as no key
// is needed; whether it is that may be said elsewhere than in the file, so Validate
// does not look.
func (c Config) KeyFaults() Faults {
	if c.Security.Trusting() {
		return nil
	}
	fs := c.shortKeys("security.rules", c.Security.Rules)
	for i, q := range c.Queues {
		fs = append(fs, c.shortKeys(fmt.Sprintf("queues[%d].authorizationRules", i), q.AuthorizationRules)...)
	}
	for i, t := range c.Topics {
		fs = append(fs, c.shortKeys(fmt.Sprintf("topics[%d].authorizationRules", i), t.AuthorizationRules)...)
	}
	return fs
}

func (c Config) shortKeys(path string, rules entity.AuthorizationRules) Faults {
	var fs Faults
	for i, r := range rules {
		for _, key := range []struct{ field, text string }{{"primaryKey", r.PrimaryKey}, {"secondaryKey", r.SecondaryKey}} {
			if n := utf8.RuneCountInString(key.text); n > 0 && n < minKey {
				fs = append(fs, c.Fault(fmt.Sprintf("%s[%d].%s", path, i, key.field),
					fmt.Sprintf("it has %d characters, a key at least %d; `openssl rand -base64 32` makes one", n, minKey)))
			}
		}
	}
	return fs
}
