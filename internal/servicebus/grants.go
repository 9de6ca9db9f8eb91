// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
)

// maxGrants bounds the audiences of one connection. Clients put two for each
// entity they use.
const maxGrants = 10000

// grantCost is what a grant takes beside its audience. It is charged until the end of
// the connection.
const grantCost = 256

// grants is what a connection may do. It belongs to the connection's context.
type grants struct {
	c *conn

	login     *access.Grant // of PLAIN
	anonymous *access.Grant // while the peer has put no token

	// byAudience holds what tokens gave, by the path they were put for. A token
	// holds only there: a client that means the whole namespace says so.
	byAudience map[string]access.Grant
	usesTokens bool // the peer has tried to put one

	proved bool
	timer  *time.Timer // runs expire when the first grant ends, or patience does
}

func (g *grants) init(c *conn) {
	g.c = c
	g.byAudience = map[string]access.Grant{}
}

// known reports once that the peer proved something, and with the key of which rule.
func (g *grants) known(rule string) {
	if g.proved {
		return
	}
	g.proved = true
	g.c.member.Prove(rule)
	g.c.known()
	if g.c.peer.Known != nil {
		g.c.peer.Known()
	}
}

// put keeps what a token gave for an audience, in place of what it had.
func (g *grants) put(audience string, grant access.Grant) error {
	g.known(grant.Rule)
	if _, ok := g.byAudience[audience]; !ok {
		if len(g.byAudience) >= maxGrants {
			return endpoint.Errorf(endpoint.CondResourceLimitExceeded, "Too many tokens on one connection.")
		}
		if !g.c.mem.Take(int64(len(audience)) + grantCost) {
			return errNoMemory
		}
		audience = strings.Clone(audience) // not to keep the request for it
	}
	g.byAudience[audience] = grant
	g.schedule()
	return nil
}

// allow reports whether the peer may do want at path now.
func (g *grants) allow(want access.Rights, path string) bool {
	now := time.Now()
	if g.login != nil && g.login.Allows(want, path, now) {
		return true
	}
	// Once a peer deals in tokens, they alone count: a development broker must
	// enforce the rights of a token as a real one does.
	if !g.usesTokens && g.anonymous != nil && g.anonymous.Allows(want, path, now) {
		return true
	}
	for i := range len(path) + 1 {
		// The audiences at and above path, the namespace being the empty one.
		if i != 0 && i != len(path) && path[i] != '/' {
			continue
		}
		if grant, ok := g.byAudience[path[:i]]; ok && grant.Allows(want, path, now) {
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
		want, g.c.urlOf(path))
}

// requireAny asks for any right at path at all.
func (g *grants) requireAny(path string) error {
	if g.allow(access.Send, path) || g.allow(access.Listen, path) {
		return nil
	}
	return g.require(access.Listen, path)
}

// expectToken starts the time in which the peer has to prove something.
func (g *grants) expectToken(patience time.Duration) {
	if !g.proved {
		g.wakeIn(patience)
	}
}

// schedule arms the timer for the first grant that ends.
func (g *grants) schedule() {
	var first time.Time
	for _, grant := range g.byAudience {
		if !grant.Expires.IsZero() && (first.IsZero() || grant.Expires.Before(first)) {
			first = grant.Expires
		}
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

// expire drops what has ended and detaches the links that stood on it.
func (g *grants) expire() {
	if !g.proved {
		g.c.close(endpoint.Errorf(endpoint.CondUnauthorizedAccess, "No token was put in time."))
		return
	}
	now := time.Now()
	for audience, grant := range g.byAudience {
		if !grant.Expires.IsZero() && !now.Before(grant.Expires) {
			delete(g.byAudience, audience)
		}
	}
	for l, n := range g.c.links {
		if want, path := n.right(); want != 0 && !g.allow(want, path) {
			g.c.detach(l, endpoint.Errorf(endpoint.CondUnauthorizedAccess,
				"The token for '%s' has expired.", g.c.urlOf(path)))
		}
	}
	g.schedule()
}
