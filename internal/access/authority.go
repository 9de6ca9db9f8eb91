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
// public, so it must open nothing that a stranger can reach.
var Development = Rule{Name: RootRule, Rights: All, PrimaryKey: "SAS_KEY_VALUE"}

// Grant is what a token or a login allows. It is bound to what gave it: the rule,
// its key and, if it is one of an entity, that very entity. [Authority.Check] tells
// whether all of that is still there.
type Grant struct {
	Rule    string
	Rights  Rights
	Scope   string    // the path at and below which it holds; empty is everywhere
	Expires time.Time // zero is never
	// Entity is the queue or topic whose rule gave it, and beyond which it does
	// not reach; empty for a rule of the namespace.
	Entity string

	entityID  uint64 // of Entity
	key       string // of the rule that was shown; empty if a certificate was
	anonymous bool   // nothing was shown
}

// Allows reports whether the grant gives want on path at now.
func (g Grant) Allows(want Rights, path string, now time.Time) bool {
	return g.Rights.Has(want) && g.Covers(path) && !g.Expired(now)
}

// Covers reports whether path is one that the grant is about, whatever it allows. A
// rule of an entity is not about another whose name begins with that of the first.
func (g Grant) Covers(path string) bool {
	return Within(path, g.Scope) && (g.Entity == "" || entity.Owner(path) == g.Entity)
}

// Holder names the rule behind the grant so that it is told from all others: rules of
// two entities may have one name.
func (g Grant) Holder() string {
	if g.Entity == "" {
		return g.Rule
	}
	return g.Entity + "/" + segmentRules + "/" + g.Rule
}

// segmentRules is no segment of an entity's name.
const segmentRules = "$rules"

// Expired reports whether the time of the grant is over.
func (g Grant) Expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

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
	// Check returns a grant that was given before as it would be given now, with
	// the rights that its rule has now; ErrRevoked if it would not: the rule, its
	// key or its entity is gone. It does not look at the time.
	Check(g Grant) (Grant, error)
}

// Entity is what a Keeper has to know about a queue or topic.
type Entity struct {
	ID    uint64 // of this very one: another of its name has another
	Rules Rules
}

// Entities looks up the queue or topic of a name, as [PathOf] writes it.
type Entities func(name string) (Entity, bool)

// RuleAuthority is the strict Authority: it knows the rules and nothing else.
type RuleAuthority struct {
	rules    atomic.Pointer[Rules]
	entities Entities
	changed  atomic.Pointer[func()]
}

// NewKeeper returns a Keeper of the rules of a namespace, which it takes over. A nil
// entities means that entities have none.
func NewKeeper(rules Rules, entities Entities) *RuleAuthority {
	if entities == nil {
		entities = func(string) (Entity, bool) { return Entity{}, false }
	}
	k := &RuleAuthority{entities: entities}
	k.Set(rules)
	return k
}

// Set replaces the rules of the namespace, and has who was named with OnChange look
// at the grants that were given by the old ones.
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

// candidates returns every rule called name that may sign for scope: those of the
// namespace, and of the entity to which it belongs.
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

// grant returns what t gives if c signed it. Both keys are always tried, so that
// the time taken does not tell which one it was.
func (t token) grant(c candidate) (Grant, bool) {
	primary, secondary := t.signedWith(c.PrimaryKey), t.signedWith(c.SecondaryKey)
	key := c.SecondaryKey
	if primary {
		key = c.PrimaryKey
	}
	return Grant{
		Rule: c.Name, Rights: c.Rights, Scope: t.scope, Expires: t.expires,
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

// VerifyJWT refuses: there is no identity provider to ask.
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

// Certificate gives the rights of the rule that is named like the certificate's
// subject: having it signed took the place of the key.
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

// Anonymous refuses.
func (k *RuleAuthority) Anonymous() (Grant, error) { return Grant{}, ErrRefused }
