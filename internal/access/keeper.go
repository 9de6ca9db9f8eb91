// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync/atomic"
	"time"
)

// Development is the rule that the vendor's emulators ship with. Its key is
// public, so it must open nothing that a stranger can reach.
var Development = Rule{Name: RootRule, Rights: All, PrimaryKey: "SAS_KEY_VALUE"}

// Grant is what a token or a login allows.
type Grant struct {
	Rule    string
	Rights  Rights
	Scope   string    // the path at and below which it holds; empty is everywhere
	Expires time.Time // zero is never
}

// Allows reports whether the grant gives want on path at now.
func (g Grant) Allows(want Rights, path string, now time.Time) bool {
	return g.Rights.Has(want) && Within(path, g.Scope) && (g.Expires.IsZero() || now.Before(g.Expires))
}

// Authority is what a personality asks. There is one for strangers and, in
// development, one for peers on this very machine.
type Authority interface {
	// Verify checks a shared access signature.
	Verify(token string, now time.Time) (Grant, error)
	// VerifyJWT checks a bearer token of an identity provider.
	VerifyJWT(token string, now time.Time) (Grant, error)
	// Login checks the name and key of a rule.
	Login(rule, key string) (Grant, error)
	// Certificate says what the holder of a verified client certificate may do.
	Certificate(name string) (Grant, error)
	// Anonymous says what a peer may do that shows nothing.
	Anonymous() (Grant, error)
}

// Keeper is the strict Authority: it knows the rules and nothing else.
type Keeper struct {
	rules    atomic.Pointer[Rules]
	entities func(path string) Rules
}

// NewKeeper returns a Keeper of the rules of a namespace, which it takes over.
// entities looks up the rules of the entity at a path, as [PathOf] writes it; nil
// means that entities have none.
func NewKeeper(rules Rules, entities func(path string) Rules) *Keeper {
	if entities == nil {
		entities = func(string) Rules { return nil }
	}
	k := &Keeper{entities: entities}
	k.Set(rules)
	return k
}

// Set replaces the rules of the namespace. Grants given before stay what they
// were until they expire.
func (k *Keeper) Set(rules Rules) { k.rules.Store(&rules) }

// Rules returns the rules of the namespace; the caller must not change them.
func (k *Keeper) Rules() Rules { return *k.rules.Load() }

// candidates returns every rule called name that may sign for scope: those of the
// namespace, and of the entities at and above it.
func (k *Keeper) candidates(name, scope string) []Rule {
	found := k.Rules().named(name)
	for i := range len(scope) + 1 {
		if i == len(scope) || scope[i] == '/' {
			found = append(found, k.entities(scope[:i]).named(name)...)
		}
	}
	return found
}

func (r Rules) named(name string) []Rule {
	var found []Rule
	for _, rule := range r {
		if strings.EqualFold(rule.Name, name) {
			found = append(found, rule)
		}
	}
	return found
}

// Verify checks a shared access signature. A token grants the rights of its rule
// at and below the resource it names.
func (k *Keeper) Verify(text string, now time.Time) (Grant, error) {
	t, err := parseToken(text)
	if err != nil {
		return Grant{}, err
	}
	for _, r := range k.candidates(t.rule, t.scope) {
		if g, ok := t.grant(r); !ok {
			continue
		} else if !now.Before(t.expires) {
			return Grant{}, &ExpiredError{t.expires}
		} else {
			return g, nil
		}
	}
	return Grant{}, ErrSignature
}

// grant returns what t gives if r signed it. Both keys are always tried, so that
// the time taken does not tell which one it was.
func (t token) grant(r Rule) (Grant, bool) {
	primary, secondary := t.signedWith(r.PrimaryKey), t.signedWith(r.SecondaryKey)
	return Grant{r.Name, r.Rights, t.scope, t.expires}, primary || secondary
}

// VerifyJWT refuses: there is no identity provider to ask.
func (k *Keeper) VerifyJWT(string, time.Time) (Grant, error) { return Grant{}, ErrRefused }

// Login checks the name and key of a rule of the namespace; the grant does not
// expire. Rules of entities need a token, which says for which entity it is.
func (k *Keeper) Login(rule, key string) (Grant, error) {
	for _, r := range k.Rules().named(rule) {
		if sameKey(r.PrimaryKey, key) || sameKey(r.SecondaryKey, key) {
			return Grant{Rule: r.Name, Rights: r.Rights}, nil
		}
	}
	return Grant{}, ErrSignature
}

// Certificate gives the rights of the rule that is named like the certificate's
// subject: having it signed took the place of the key.
func (k *Keeper) Certificate(name string) (Grant, error) {
	for _, r := range k.Rules().named(name) {
		return Grant{Rule: r.Name, Rights: r.Rights}, nil
	}
	return Grant{}, ErrRefused
}

// sameKey compares in constant time, also when the lengths differ. An empty key
// is no key.
func sameKey(want, got string) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
	return want != "" && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Anonymous refuses.
func (k *Keeper) Anonymous() (Grant, error) { return Grant{}, ErrRefused }
