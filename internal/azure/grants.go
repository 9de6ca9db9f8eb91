// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
)

// maxGrants bounds the audiences of one connection. Clients put two for each
// entity they use.
const maxGrants = 10000

// grantCost is what a grant takes: beside its audience there are its key and what is
// watched for it.
func grantCost(audience string) int64 { return int64(len(audience)) + 512 }

// grants is what a connection may do. It belongs to the connection's context.
//
// A grant is looked at where it is used, and again when something that it depends
// on changes: the time, its rule, or the entity that it was put for. Links whose
// right has gone end then; see review.
type grants struct {
	c *Conn

	login     *access.Grant // of PLAIN or a certificate
	anonymous *access.Grant // while the peer has put no token

	// byAudience holds what tokens gave, by the path they were put for. A token
	// holds only there: a client that means the whole namespace says so.
	byAudience map[string]put
	usesTokens bool // the peer has tried to put one

	authenticated bool  // the peer has a grant, or had one
	refusal       error // why it is closed all the same, when it has opened
	// deadline is until when a peer without a grant is waited for; zero while it
	// has one.
	deadline time.Time
	timer    *time.Timer // runs expire when the first grant ends, or at the deadline
}

// put is what a token gave.
type put struct {
	access.Grant
	// entity is the ID of what it was put for: the queue, topic or subscription
	// of that path then, and no other that has its name later. Zero is none.
	entity uint64
}

func (g *grants) init(c *Conn) {
	g.c = c
	g.byAudience = map[string]put{}
}

// known notes that the peer has authenticated. The first time it reports so, and the
// key with which it did.
func (g *grants) known(by access.Grant) {
	if g.authenticated {
		return
	}
	g.authenticated = true
	g.c.sending.Key = by.Holder() // before there is a link that uses it
	if !g.c.member.Prove(budget.Owner{Key: by.Holder(), Entity: by.Entity, Manager: by.ManagesNamespace()}) {
		g.refusal = ErrNoMemory
	}
	g.c.mem.Add(g.c.peer.Cost)
	g.c.known()
	if g.c.peer.OnAuthenticated != nil && !g.c.peer.OnAuthenticated(by) {
		g.refusal = errTooManyConnections
	}
	g.c.connected()
}

// put keeps what a token gave for an audience, in place of what it had.
func (g *grants) put(audience string, grant access.Grant) error {
	g.known(grant)
	// Watched first: we are notified of changes after this check.
	g.c.watch(audience)
	id, err := g.c.identify(audience)
	if err != nil {
		return err
	}
	old, again := g.byAudience[audience]
	if !again {
		if len(g.byAudience) >= maxGrants {
			return endpoint.Errorf(endpoint.CondResourceLimitExceeded, "Too many tokens on one connection.")
		}
		if !g.c.mem.Take(grantCost(audience)) {
			return ErrNoMemory
		}
		audience = strings.Clone(audience) // not to keep the request for it
	}
	g.byAudience[audience] = put{grant, id}
	g.deadline = time.Time{}
	g.schedule()
	if again {
		now, _ := g.holds(&old.Grant) // its rule may have got more since
		if !grant.Rights.Has(old.Rights | now.Rights) {
			g.c.review() // links that stood on the others have nothing any more
		}
	}
	return nil
}

// useTokens notes that the peer deals in tokens. What it had without one ends, also for
// links that are there.
func (g *grants) useTokens() {
	if !g.usesTokens {
		g.usesTokens = true
		if g.anonymous != nil {
			g.c.review()
		}
	}
}

// drop forgets what was put for an audience.
func (g *grants) drop(audience string) {
	delete(g.byAudience, audience)
	g.c.mem.Release(grantCost(audience))
}

// holds returns a grant as it is now, and whether it is one still.
func (g *grants) holds(grant *access.Grant) (access.Grant, bool) {
	if grant == nil {
		return access.Grant{}, false
	}
	return holds(g.c.peer.Authority, *grant)
}

func holds(by access.Authority, grant access.Grant) (access.Grant, bool) {
	now, err := by.Check(grant)
	return now, err == nil && !now.Expired(time.Now())
}

// valid reports whether what was put for an audience is still good: its rule is
// there, and so is the entity.
func (g *grants) valid(audience string, p put) (access.Grant, bool) {
	return p.valid(g.c.svc, g.c.peer.Authority, audience)
}

func (p put) valid(svc *Service, by access.Authority, audience string) (access.Grant, bool) {
	if p.entity != 0 {
		if id, err := svc.identify(audience); err != nil || id != p.entity {
			return access.Grant{}, false
		}
	}
	return holds(by, p.Grant)
}

// allow reports whether the peer may do want at path now.
func (g *grants) allow(want access.Rights, path string) bool {
	for range g.allowing(want, path) {
		return true
	}
	return false
}

// allowing returns the grants by which the peer may do want at path now, and the audiences
// that they were put for.
func (g *grants) allowing(want access.Rights, path string) iter.Seq2[string, put] {
	return func(yield func(string, put) bool) {
		now := time.Now()
		if grant, ok := g.holds(g.login); ok && grant.Allows(want, path, now) && !yield("", put{Grant: grant}) {
			return
		}
		// Once a peer deals in tokens, they alone count: a development broker must
		// enforce the rights of a token as a real one does.
		if grant, ok := g.holds(g.anonymous); ok && !g.usesTokens && grant.Allows(want, path, now) && !yield("", put{Grant: grant}) {
			return
		}
		owner := entity.Owner(path)
		for i := range len(path) + 1 {
			// The audiences at and above path, the namespace being the empty one, as
			// far as they are of the same entity.
			if i != 0 && i != len(path) && path[i] != '/' {
				continue
			}
			audience := path[:i]
			p, ok := g.byAudience[audience]
			if !ok || audience != "" && entity.Owner(audience) != owner {
				continue
			}
			if grant, ok := g.valid(audience, p); ok && grant.Allows(want, path, now) && !yield(audience, p) {
				return
			}
		}
	}
}

// right returns that by which the peer may do want at path: of several, the one that ends
// last.
func (g *grants) right(want access.Rights, path string) (Right, bool) {
	var last put
	var of string
	found := false
	for audience, p := range g.allowing(want, path) {
		if !found || !last.Expires.IsZero() && (p.Expires.IsZero() || p.Expires.After(last.Expires)) {
			last, of, found = p, audience, true
		}
	}
	if !found {
		return Right{}, false
	}
	svc, by := g.c.svc, g.c.peer.Authority // and not the connection, which would be kept
	audience, path := strings.Clone(of), strings.Clone(path)
	return Right{Holder: last.Holder(), Ends: last.Expires, Holds: func() bool {
		grant, ok := last.valid(svc, by, audience)
		return ok && grant.Allows(want, path, time.Now())
	}}, true
}

// any reports whether the peer has a grant of any kind.
func (g *grants) any() bool {
	if _, ok := g.holds(g.login); ok {
		return true
	}
	if _, ok := g.holds(g.anonymous); ok && !g.usesTokens {
		return true
	}
	for audience, p := range g.byAudience {
		if _, ok := g.valid(audience, p); ok {
			return true
		}
	}
	return false
}

// require is allow as an error in the words of the service.
func (g *grants) require(want access.Rights, path string) error {
	if g.allow(want, path) {
		return nil
	}
	return endpoint.Errorf(endpoint.CondUnauthorizedAccess,
		"Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.",
		cmp.Or(want.String(), access.Listen.String()), wire.URL(g.c.host, path))
}

// requireAny asks for any right at path at all.
func (g *grants) requireAny(path string) error {
	if g.allow(access.Send, path) || g.allow(access.Listen, path) {
		return nil
	}
	return g.require(access.Listen, path)
}

// requireSome asks for a right to anything, wherever it is.
func (g *grants) requireSome(want access.Rights, path string) error {
	if g.any() {
		return nil
	}
	return g.require(want, path)
}

// expectToken starts the time in which the peer has to prove something.
func (g *grants) expectToken() {
	if !g.authenticated {
		g.deadline = time.Now().Add(g.c.peer.AuthTimeout)
		g.schedule()
	}
}

// schedule arms the timer for the first grant that ends, or for the deadline.
func (g *grants) schedule() {
	first := g.deadline
	ends := func(grant *access.Grant) {
		if !grant.Expires.IsZero() && (first.IsZero() || grant.Expires.Before(first)) {
			first = grant.Expires
		}
	}
	if g.login != nil {
		ends(g.login)
	}
	for _, p := range g.byAudience {
		ends(&p.Grant)
	}
	if first.IsZero() {
		g.stop()
		return
	}
	g.wakeIn(time.Until(first))
}

func (g *grants) wakeIn(d time.Duration) {
	g.stop()
	g.timer = time.AfterFunc(max(d, 0), func() { g.c.do(g.expire) })
}

func (g *grants) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// expire runs when the first grant has ended, and when a peer without one has been
// waited for.
func (g *grants) expire() {
	if g.deadline.IsZero() || time.Now().Before(g.deadline) {
		g.review()
		return
	}
	if !g.authenticated {
		g.c.close(endpoint.Errorf(endpoint.CondUnauthorizedAccess, "No token was put in time."))
		return
	}
	// SDKs connect again after this when they need to.
	g.c.close(endpoint.Errorf(endpoint.CondConnectionForced, "No token is left on this connection."))
}

// review drops the grants that have ended, detaches the links that stood on them and
// ends the requests that did.
// A peer that is left without any is unauthenticated again: it may put a token, and has
// as much time for it as one that has just connected.
func (g *grants) review() {
	for audience, p := range g.byAudience {
		if _, ok := g.valid(audience, p); !ok {
			g.drop(audience)
		}
	}
	if _, ok := g.holds(g.login); !ok && g.login != nil {
		g.login = nil
		if !g.any() {
			// It deals in no tokens, and cannot log in again.
			g.c.close(endpoint.Errorf(endpoint.CondUnauthorizedAccess, "The key of this connection was changed or removed, or its certificate has ended."))
			return
		}
	}
	for l, a := range g.c.links {
		if err := a.node.Check(); err != nil {
			l.Detach(g.ended(l, err))
		}
	}
	g.c.pool.review()
	g.c.unwatch()
	if g.deadline.IsZero() && !g.any() {
		g.deadline = time.Now().Add(g.c.peer.AuthTimeout)
	}
	g.schedule()
}

// ended words the end of a link that was in order before.
func (g *grants) ended(l *endpoint.Link, err error) *endpoint.Error {
	e := g.c.WireError(l.Address(), err)
	if e.Condition != endpoint.CondUnauthorizedAccess {
		return e
	}
	return endpoint.Errorf(e.Condition, "A token has expired, or its key was changed or removed. %s", e.Description)
}
