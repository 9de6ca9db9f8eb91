// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// RootRule is the name of the rule that a new namespace starts with.
const RootRule = "RootManageSharedAccessKey"

// Limits on rules, as Service Bus has them.
const (
	maxRules    = 12
	maxRuleName = 256
	maxKey      = 256
)

// Rule is a shared access rule: a name, what it allows, and two keys, so that one
// can be changed while clients still use the other. An empty key never matches.
type Rule struct {
	Name         string `json:"name"`
	Rights       Rights `json:"rights"`
	PrimaryKey   string `json:"primaryKey"`
	SecondaryKey string `json:"secondaryKey,omitempty"`
}

// NewRule makes a rule with two random keys.
func NewRule(name string, rights Rights) Rule {
	return Rule{Name: name, Rights: rights, PrimaryKey: NewKey(), SecondaryKey: NewKey()}
}

// Rotate returns the rule with a new primary key, and the old one as the
// secondary: the old key stays valid until the next rotation.
func (r Rule) Rotate() Rule {
	r.PrimaryKey, r.SecondaryKey = NewKey(), r.PrimaryKey
	return r
}

// NewKey makes a key: 32 random bytes in base64, the form that Azure's keys have.
func NewKey() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, says its documentation
	return base64.StdEncoding.EncodeToString(b[:])
}

// Rules are the rules of a namespace, which apply to everything in it. The zero
// value has none and grants nothing. Entities have rules of their own, in their
// definitions; see [OfEntity].
type Rules []Rule

// OfEntity returns the rules in the definition of an entity.
func OfEntity(defined entity.AuthorizationRules) Rules {
	rules := make(Rules, len(defined))
	for i, d := range defined {
		rules[i] = Rule{Name: d.KeyName, PrimaryKey: d.PrimaryKey, SecondaryKey: d.SecondaryKey}
		for _, right := range d.Rights {
			r, _ := parseRights([]string{string(right)}) // one that is unknown grants nothing
			rules[i].Rights |= r
		}
	}
	return rules
}

// With returns the rules with others added, replacing those of the same name.
func (r Rules) With(others Rules) Rules {
	all := slices.DeleteFunc(slices.Clone(r), func(old Rule) bool {
		return slices.ContainsFunc(others, func(o Rule) bool { return strings.EqualFold(o.Name, old.Name) })
	})
	return append(all, others...)
}

// version of the encoded form. It is on disk; a change needs a reader for the
// old number.
const version = 1

type encoded struct {
	Version int   `json:"version"`
	Rules   Rules `json:"rules"`
}

// Encode returns the rules in the form that is stored on disk. It contains keys
// in clear text: only the owner may have access to the file.
func (r Rules) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(encoded{version, r}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode access rules: %w", err)
	}
	return append(b, '\n'), nil
}

// Decode reads what Encode wrote.
func Decode(b []byte) (Rules, error) {
	var e encoded
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if e.Version != version {
		return nil, fmt.Errorf("%w: version %d is not known here", errInvalid, e.Version)
	}
	return e.Rules, e.Rules.Validate()
}

// Validate reports every fault at once.
func (r Rules) Validate() error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s", errInvalid, fmt.Sprintf(format, args...)))
	}
	if len(r) > maxRules {
		fault("%d rules, at most %d are allowed", len(r), maxRules)
	}
	seen := map[string]bool{}
	for _, rule := range r {
		name := strings.ToLower(rule.Name)
		switch {
		case rule.Name == "" || len(rule.Name) > maxRuleName:
			fault("rule name %q is empty or longer than %d", rule.Name, maxRuleName)
		case seen[name]:
			fault("rule %q is there twice", rule.Name)
		case rule.Rights == 0:
			fault("rule %q has no rights", rule.Name)
		case rule.PrimaryKey == "":
			fault("rule %q has no primary key", rule.Name)
		case len(rule.PrimaryKey) > maxKey || len(rule.SecondaryKey) > maxKey:
			fault("rule %q has a key longer than %d", rule.Name, maxKey)
		}
		seen[name] = true
	}
	return errors.Join(errs...)
}
