// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

// Development is the rule that the vendor's emulators ship with. Its key is
// public, so it must grant nothing that is reachable from other machines.
var Development = Rule{Name: RootRule, Rights: All, PrimaryKey: "SAS_KEY_VALUE"}

// Grant is what a token or a login allows. It is bound to its origin: the rule,
// its key and, for a rule of an entity, that entity itself. [Authority.Check]
// reports whether all of them still exist.
type Grant struct {
	Rule    string
	Rights  Rights
	Scope   string    // the path at and below which it is valid; empty is everywhere
	Expires time.Time // zero is never
	// Entity is the queue or topic whose rule granted it; it is not valid for any
	// other. Empty for a rule of the namespace.
	Entity string

	entityID  uint64 // of Entity
	key       string // of the rule that was shown; empty if a certificate was
	anonymous bool   // nothing was shown
}

// Allows reports whether the grant includes the rights want on path at now.
func (g Grant) Allows(want Rights, path string, now time.Time) bool {
	return g.Rights.Has(want) && g.Covers(path) && !g.Expired(now)
}

// Covers reports whether path is in the scope of the grant, without regard to
// rights. A rule of an entity does not cover another entity whose name begins
// with the name of the first.
func (g Grant) Covers(path string) bool {
	return within(path, g.Scope) && (g.Entity == "" || entity.Owner(path) == g.Entity)
}

// Holder names the rule behind the grant uniquely: rules of two entities may
// have the same name.
func (g Grant) Holder() string {
	if g.Entity == "" {
		return g.Rule
	}
	return g.Entity + "/" + segmentRules + "/" + g.Rule
}

// Account names whom the work and the connections of the grant are counted for: its rule, or for a
// rule of an entity that entity. So who makes itself new keys gets no more of anything. It is the
// name of no other rule.
func (g Grant) Account() string {
	if g.Entity == "" {
		return g.Rule
	}
	return g.Entity + "/" + segmentRules
}

// ManagesNamespace reports whether the grant has the right to manage all of the namespace.
func (g Grant) ManagesNamespace() bool {
	return g.Entity == "" && g.Scope == "" && g.Rights.Has(Manage)
}

// segmentRules is no segment of an entity's name.
const segmentRules = "$rules"

// Expired reports whether the time of the grant is over.
func (g Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// Authority is what a protocol personality uses to authenticate and authorize.
// There is one for all peers and, in development, another one for peers on this
// machine.
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
	// Check returns an earlier grant as it would be granted now, with the present
	// rights of its rule. It returns ErrRevoked if the rule, its key or its entity
	// no longer exists. It does not check the expiry.
	Check(g Grant) (Grant, error)
}

// Entity is what a RuleAuthority needs of a queue or topic.
type Entity struct {
	ID    uint64 // unique: a later entity of the same name has another
	Rules Rules
}

// Entities looks up the queue or topic of a name, as [PathOf] writes it.
type Entities func(name string) (Entity, bool)

// RuleAuthority is the strict Authority: it grants by the rules only.
type RuleAuthority struct {
	rules    atomic.Pointer[Rules]
	entities Entities
	changed  atomic.Pointer[func()]
}

// NewRuleAuthority returns an authority by the rules of a namespace, which it keeps. A nil
// entities means that entities have none.
func NewRuleAuthority(rules Rules, entities Entities) *RuleAuthority {
	if entities == nil {
		entities = func(string) (Entity, bool) { return Entity{}, false }
	}
	k := &RuleAuthority{entities: entities}
	k.Set(rules)
	return k
}

// Set replaces the rules of the namespace, and calls the functions registered
// with OnChange, so that they check the grants that were made by the old ones.
func (k *RuleAuthority) Set(rules Rules) {
	k.rules.Store(&rules)
	if fn := k.changed.Load(); fn != nil {
		(*fn)()
	}
}

// OnChange has fn called after each Set. There is one fn.
func (k *RuleAuthority) OnChange(fn func()) { k.changed.Store(&fn) }

// Rules returns the rules of the namespace; the caller must not change them.
func (k *RuleAuthority) Rules() Rules { return *k.rules.Load() }

// candidate is a rule that may have signed a token.
type candidate struct {
	Rule
	entity string // that it is of; empty is the namespace
	id     uint64 // of the entity
}

// candidates returns every rule called name that may sign for scope: those of
// the namespace and those of the scope's entity.
func (k *RuleAuthority) candidates(name, scope string) []candidate {
	var found []candidate
	for _, r := range k.Rules().Named(name) {
		found = append(found, candidate{Rule: r})
	}
	owner := entity.Owner(scope)
	if owner == "" {
		return found
	}
	if e, ok := k.entities(owner); ok {
		for _, r := range e.Rules.Named(name) {
			found = append(found, candidate{r, owner, e.ID})
		}
	}
	return found
}

// Named returns the rules of that name, which is compared without regard to case.
func (r Rules) Named(name string) Rules {
	var found Rules
	for _, rule := range r {
		if strings.EqualFold(rule.Name, name) {
			found = append(found, rule)
		}
	}
	return found
}

// Verify checks a shared access signature. A token grants the rights of its rule
// at and below the resource it names.
func (k *RuleAuthority) Verify(text string, now time.Time) (Grant, error) {
	t, err := parseToken(text)
	if err != nil {
		return Grant{}, err
	}
	for _, r := range k.candidates(t.KeyName, t.scope) {
		if g, ok := t.grant(r); !ok {
			continue
		} else if !now.Before(t.Expires) {
			return Grant{}, &ExpiredError{t.Expires}
		} else {
			return g, nil
		}
	}
	return Grant{}, ErrSignature
}

// grant returns the grant of t if c signed it. Both keys are always tried, so
// that the time taken does not reveal which one matched.
func (t token) grant(c candidate) (Grant, bool) {
	primary, secondary := t.SignedWith(c.PrimaryKey), t.SignedWith(c.SecondaryKey)
	key := c.SecondaryKey
	if primary {
		key = c.PrimaryKey
	}
	return Grant{
		Rule: c.Name, Rights: c.Rights, Scope: t.scope, Expires: t.Expires,
		Entity: c.entity, entityID: c.id, key: key,
	}, primary || secondary
}

// Check implements Authority.
func (k *RuleAuthority) Check(g Grant) (Grant, error) {
	rules := k.Rules()
	if g.Entity != "" {
		e, ok := k.entities(g.Entity)
		if !ok || e.ID != g.entityID {
			return Grant{}, ErrRevoked
		}
		rules = e.Rules
	}
	for _, r := range rules.Named(g.Rule) {
		if !g.anonymous && (g.key == "" || g.key == r.PrimaryKey || g.key == r.SecondaryKey) {
			g.Rights = r.Rights
			return g, nil
		}
	}
	return Grant{}, ErrRevoked
}

// VerifyJWT rejects: there is no identity provider.
func (k *RuleAuthority) VerifyJWT(string, time.Time) (Grant, error) { return Grant{}, ErrRefused }

// Login checks the name and key of a rule of the namespace; the grant does not
// expire. Rules of entities need a token, which says for which entity it is.
func (k *RuleAuthority) Login(rule, key string) (Grant, error) {
	for _, r := range k.Rules().Named(rule) {
		if sameKey(r.PrimaryKey, key) || sameKey(r.SecondaryKey, key) {
			return Grant{Rule: r.Name, Rights: r.Rights, key: key}, nil
		}
	}
	return Grant{}, ErrSignature
}

// Certificate grants the rights of the rule whose name is the certificate's
// subject. The signature of the certificate replaces the key.
func (k *RuleAuthority) Certificate(name string) (Grant, error) {
	for _, r := range k.Rules().Named(name) {
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

// Anonymous rejects.
func (k *RuleAuthority) Anonymous() (Grant, error) { return Grant{}, ErrRefused }
