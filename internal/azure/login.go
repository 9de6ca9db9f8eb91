// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"bytes"

	"github.com/triagemq/triagemq/internal/access"
)

// Mechanisms offers ANONYMOUS first, because go-amqp takes the first it knows and
// proves itself with a token afterwards; so does MSSBCBS, the vendor's own name
// for the same. PLAIN is for clients that know no tokens, EXTERNAL for those that
// came with a certificate.
func (c *app) Mechanisms() []string {
	offered := []string{"ANONYMOUS", "PLAIN", "MSSBCBS"}
	if c.peer.Certificate != "" {
		offered = append(offered, "EXTERNAL")
	}
	return offered
}

// Login checks what SASL brought. ANONYMOUS proves nothing: it may put a token
// later, or is accepted by an authority that trusts this machine.
func (c *app) Login(mechanism string, response []byte) error {
	switch mechanism {
	case "PLAIN":
		rule, key, err := parsePlain(response)
		if err != nil {
			c.refused("", err)
			return err
		}
		return c.loggedIn(c.peer.Authority.Login(rule, key))
	case "EXTERNAL":
		if c.peer.Certificate == "" {
			return access.ErrRefused
		}
		g, err := c.peer.Authority.Certificate(c.peer.Certificate)
		g.Expires = c.peer.CertificateEnds
		return c.loggedIn(g, err)
	case "ANONYMOUS", "MSSBCBS":
		if g, err := c.peer.Authority.Anonymous(); err == nil {
			c.grants.anonymous = &g
			c.grants.known(g)
		}
		return nil
	}
	return access.ErrRefused
}

// refused reports a refusal that the peer's authority knows nothing of.
func (c *Conn) refused(rule string, err error) {
	if a, ok := c.peer.Authority.(interface{ Refused(rule string, err error) }); ok {
		a.Refused(rule, err)
	}
}

// connected writes to the log who the peer is, as soon as it has opened and has
// authenticated. One that is refused is told then: before it opens, it cannot be told why.
func (c *Conn) connected() {
	if c.opened && c.grants.authenticated {
		if c.grants.refusal != nil {
			c.close(c.grants.refusal)
		}
		c.log.Debug("client connected", "key", c.sending.Key, "client", c.client)
	}
}

func (c *Conn) loggedIn(g access.Grant, err error) error {
	if err != nil {
		return err
	}
	c.grants.login = &g
	c.grants.known(g)
	c.grants.schedule()
	return nil
}

// parsePlain takes the message of PLAIN apart: an identity to act as, which is
// not used here, the name of a rule, and its key [RFC 4616].
func parsePlain(response []byte) (rule, key string, err error) {
	parts := bytes.SplitN(response, []byte{0}, 4) // with one more than there may be
	if len(parts) != 3 {
		return "", "", access.ErrMalformed
	}
	return string(parts[1]), string(parts[2]), nil
}
