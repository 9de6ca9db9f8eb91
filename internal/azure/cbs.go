// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/azure/wire"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

const (
	tokenSAS = names.TokenSAS
	tokenJWT = names.TokenJWT
)

// attachCBS attaches to the node that takes tokens. There is one pair of links
// for a connection; the Go SDK relies on a second being refused to find out that
// an earlier one was left open.
func (c *Conn) attachCBS(l *endpoint.Link) error {
	taken := func() error {
		return endpoint.Errorf(endpoint.CondNotAllowed, "A link to $cbs is open already on this connection.")
	}
	if l.Role() == frame.Receiver {
		if c.cbs.requests != nil {
			return taken()
		}
		c.cbs.requests = l
		c.Attached(l, &requests{c: c, link: l, node: wire.CBS, serve: c.putToken,
			done: func() { c.cbs.requests = nil }})
		l.Accept(endpoint.Accept{Credit: requestWindow, MaxMessageSize: limits.TokenRequest})
		return nil
	}
	if c.cbs.replies != nil {
		return taken()
	}
	c.cbs.replies = l
	c.Attached(l, &replies{c: c, link: l, node: wire.CBS, tokens: true,
		done: func() { c.cbs.replies = nil }})
	l.Accept(endpoint.Accept{})
	return nil
}

// putToken serves a request to $cbs.
func (c *Conn) putToken(r *request) {
	audience := r.property("name")
	if err := c.checkToken(r, audience); err != nil {
		c.log.Debug("token refused", "audience", audience, "err", err)
		a := c.failed(c.entityOf(audience), err)
		r.from.answer(r, a)
		return
	}
	r.from.answer(r, reply{Reply: wire.Reply{Status: condition.StatusAccepted, Text: "Accepted"}})
}

func (c *Conn) checkToken(r *request, audience string) error {
	if op := r.property(names.Operation); op != names.PutToken {
		return endpoint.Errorf(endpoint.CondNotImplemented, "Operation '%s' is not known on $cbs.", op)
	}
	c.grants.useTokens()
	body, _ := r.message.Value()
	token, ok := body.Str()
	if !ok {
		return access.ErrMalformed
	}
	grant, err := c.verify(r.property("type"), token)
	if err != nil {
		return err
	}
	path := wire.PathOf(audience)
	if !grant.Covers(path) {
		c.refused(grant.Rule, errElsewhere)
		return access.ErrSignature // signed, but for something else
	}
	// Only a peer that has a key may learn which entities exist.
	if err := c.checkAudience(path); err != nil {
		return err
	}
	return c.grants.put(path, grant)
}

// errElsewhere is for the log: the peer learns no more than of a forged token.
var errElsewhere = fmt.Errorf("%w for what it was put for", access.ErrSignature)

// verify checks a token. What it is, its text says: azure-eventhub 5.11 for Python calls
// shared access signatures JWTs.
func (c *Conn) verify(kind, token string) (access.Grant, error) {
	if kind == tokenJWT && strings.HasPrefix(token, "SharedAccessSignature ") {
		kind = tokenSAS
	}
	switch kind {
	case tokenSAS:
		return c.peer.Authority.Verify(token, time.Now())
	case tokenJWT:
		return c.peer.Authority.VerifyJWT(token, time.Now())
	}
	return access.Grant{}, endpoint.Errorf(endpoint.CondNotImplemented, "Tokens of type '%s' are not known here.", kind)
}

// checkAudience reports an audience that names no entity. It has to be said here:
// the Go SDK knows a missing entity only by the status of this reply.
func (c *Conn) checkAudience(path string) error {
	if wire.IsManagement(path) {
		path = wire.ManagedEntity(path)
	}
	if path == "" || path == wire.CBS || wire.IsDynamicNode(path) {
		return nil
	}
	_, _, err := c.svc.find(path)
	if err != nil && !errors.Is(err, broker.ErrNotFound) {
		return endpoint.Errorf(endpoint.CondNotFound, "The messaging entity '%s' could not be found.", wire.URL(c.host, path))
	}
	return err
}

// entityOf names the entity of an audience in texts, as the peer wrote it, except that
// the fixed segments have the spelling of Service Bus.
func (c *Conn) entityOf(audience string) string {
	p, err := entity.ParsePath(audience)
	if err != nil {
		return access.PathOf(audience)
	}
	p.Management = false
	return p.String()
}
