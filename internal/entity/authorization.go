// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/internal/limits"
)

// Right is something that the holder of a key may do.
type Right string

// The rights, spelt as on the wire. Manage includes the other two.
const (
	Send   Right = "Send"
	Listen Right = "Listen"
	Manage Right = "Manage"
)

// ParseRight reads a right in any case.
func ParseRight(text string) (Right, error) {
	for _, r := range []Right{Send, Listen, Manage} {
		if strings.EqualFold(text, string(r)) {
			return r, nil
		}
	}
	return "", fmt.Errorf("%q is not Send, Listen or Manage", text)
}

// UnmarshalText reads a right in any case.
func (r *Right) UnmarshalText(text []byte) error {
	v, err := ParseRight(string(text))
	if err != nil {
		return err
	}
	*r = v
	return nil
}

// AuthorizationRule grants its rights to callers with one of its keys.
type AuthorizationRule struct {
	KeyName      string    `json:"keyName"`
	Rights       []Right   `json:"rights"`
	PrimaryKey   string    `json:"primaryKey,omitzero"`
	SecondaryKey string    `json:"secondaryKey,omitzero"`
	CreatedTime  time.Time `json:"createdTime,omitzero"`
	ModifiedTime time.Time `json:"modifiedTime,omitzero"`
}

// String leaves the keys out, so that a rule can be printed.
func (r AuthorizationRule) String() string { return fmt.Sprintf("%s%v", r.KeyName, r.Rights) }

// AuthorizationRules are the rules of one entity, or of the namespace.
type AuthorizationRules []AuthorizationRule

// Validate reports everything that is wrong with rs, as [Faults].
func (rs AuthorizationRules) Validate() error { return rs.faults().err() }

func (rs AuthorizationRules) faults() Faults {
	var fs Faults
	if len(rs) > limits.AuthorizationRules {
		fs.addf("", "%d rules, at most %d are allowed", len(rs), limits.AuthorizationRules)
	}
	names := map[string]bool{}
	for i, r := range rs {
		if fs.full() {
			break
		}
		place := fmt.Sprintf("[%d]", i)
		fs.nested(place, r.faults())
		if r.KeyName != "" && names[r.KeyName] {
			fs.addf(place+".keyName", "%q names two rules", r.KeyName)
		}
		names[r.KeyName] = true
	}
	return fs
}

func (r AuthorizationRule) faults() Faults {
	var fs Faults
	if r.KeyName == "" {
		fs.addf("keyName", "missing")
	}
	fs.length("keyName", r.KeyName, limits.KeyText)
	if len(r.Rights) == 0 {
		fs.addf("rights", "missing; use Send, Listen, Manage")
	}
	for _, right := range r.Rights {
		if fs.full() {
			break
		}
		if _, err := ParseRight(string(right)); err != nil {
			fs.addf("rights", "%s", Reason(err))
		}
	}
	if r.PrimaryKey == "" {
		fs.addf("primaryKey", "missing")
	}
	for _, key := range []struct{ field, text string }{{"primaryKey", r.PrimaryKey}, {"secondaryKey", r.SecondaryKey}} {
		fs.length(key.field, key.text, limits.KeyText)
		if isPlaceholder(key.text) {
			fs.addf(key.field, "it looks like a placeholder; `openssl rand -base64 32` makes a key")
		}
	}
	return fs
}

// minKey is how many characters a key has at least, where it is needed. Nothing but its
// length protects a key: there is no limit on how often a login may fail.
const minKey = 16

// CheckKeys reports the keys that are too short, other than those of known.
// Validate does not: in development any key is accepted.
func (rs AuthorizationRules) CheckKeys(known AuthorizationRules) error {
	old := map[string]bool{}
	for _, r := range known {
		old[r.PrimaryKey], old[r.SecondaryKey] = true, true
	}
	var fs Faults
	for i, r := range rs {
		for _, key := range []struct{ field, text string }{{"primaryKey", r.PrimaryKey}, {"secondaryKey", r.SecondaryKey}} {
			if n := utf8.RuneCountInString(key.text); n > 0 && n < minKey && !old[key.text] {
				fs.addf(fmt.Sprintf("[%d].%s", i, key.field), "it has %d characters, a key at least %d; `openssl rand -base64 32` makes one", n, minKey)
			}
		}
	}
	return fs.err()
}

// CheckKeys reports the keys of the queue that are too short, other than those of known.
func (q Queue) CheckKeys(known AuthorizationRules) error { return ownKeys(q.AuthorizationRules, known) }

// CheckKeys reports the keys of the topic that are too short, other than those of known.
func (t Topic) CheckKeys(known AuthorizationRules) error { return ownKeys(t.AuthorizationRules, known) }

func ownKeys(rules, known AuthorizationRules) error {
	found, _ := errors.AsType[Faults](rules.CheckKeys(known))
	var fs Faults
	fs.nested("authorizationRules", found)
	return fs.err()
}

// isPlaceholder reports whether a key is a placeholder from documents and
// examples, which is publicly known.
func isPlaceholder(key string) bool {
	if strings.ContainsAny(key, "…") || strings.Contains(key, "...") || strings.HasPrefix(key, "<") && strings.HasSuffix(key, ">") {
		return true
	}
	letters := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(key))
	for _, word := range []string{"changeme", "replaceme", "yourkey", "placeholder"} {
		if strings.Contains(letters, word) {
			return true
		}
	}
	return false
}
