// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// NewKey makes a key: 32 random bytes in base64, the form that Azure's keys have.
func NewKey() string {
	var b [32]byte
	rand.Read(b[:]) // never fails, says its documentation
	return base64.StdEncoding.EncodeToString(b[:])
}

// Rules are all rules of a namespace. The zero value has none and lets nobody in.
type Rules struct {
	Namespace []Rule `json:"namespace"`
	// Entities holds the rules of single entities by path; see [PathOf].
	Entities map[string][]Rule `json:"entities,omitempty"`
}

// version of the encoded form. It is on disk; a change needs a reader for the
// old number.
const version = 1

type encoded struct {
	Version int `json:"version"`
	Rules
}

// Encode returns the rules in the form that is kept on disk. It holds keys in
// clear: the file must be readable by its owner alone.
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
		return Rules{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if e.Version != version {
		return Rules{}, fmt.Errorf("%w: version %d is not known here", ErrInvalid, e.Version)
	}
	return e.Rules, e.Rules.Validate()
}

// Validate reports every fault at once.
func (r Rules) Validate() error {
	errs := []error{validate("namespace", r.Namespace)}
	for path, rules := range r.Entities {
		errs = append(errs, validate(fmt.Sprintf("entity %q", path), rules))
	}
	return errors.Join(errs...)
}

func validate(where string, rules []Rule) error {
	var errs []error
	fault := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: %s: %s", ErrInvalid, where, fmt.Sprintf(format, args...)))
	}
	if len(rules) > maxRules {
		fault("%d rules, at most %d are allowed", len(rules), maxRules)
	}
	seen := map[string]bool{}
	for _, rule := range rules {
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
