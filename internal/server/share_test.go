// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
)

// keyed starts a broker for so many connections, with a key that may only send and one of a
// queue, besides root.
func keyed(t *testing.T, connections int) (r *running, root, sender, own, second access.Rule) {
	rule := func(name string) access.Rule { return access.Rule{Name: name, PrimaryKey: "the long key of " + name} }
	root, sender, own, second = rule("root"), rule("sender"), rule("own"), rule("second")
	rights := func(r access.Rule, rights ...entity.Right) entity.AuthorizationRule {
		return entity.AuthorizationRule{KeyName: r.Name, Rights: rights, PrimaryKey: r.PrimaryKey}
	}
	r = run(t, func(c *Config) {
		c.Security.Dev = false
		c.Limits.MaxConnections = connections
		c.Security.Rules = entity.AuthorizationRules{rights(root, entity.Send, entity.Listen, entity.Manage), rights(sender, entity.Send)}
		c.Queues = []entity.Queue{{Name: "q", AuthorizationRules: entity.AuthorizationRules{rights(own, entity.Send), rights(second, entity.Send)}}}
	})
	return r, root, sender, own, second
}

// post sends a message on a connection of its own, which stays open, and returns the status.
func (r *running) post(key access.Rule, body string) (net.Conn, *http.Response) {
	r.t.Helper()
	nc, br := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 1\r\n\r\n%s",
		access.SignToken(key, "http://x/q", time.Now().Add(time.Hour)), body)
	if body == "" {
		return nc, nil
	}
	res, err := http.ReadResponse(bufio.NewReader(br), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return nc, res
}

// login connects by AMQP and stays. The error is that of the broker.
func (r *running) login(key access.Rule) error {
	r.t.Helper()
	c, err := amqp.NewConn(r.ctx(), r.dial(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(key.Name, key.PrimaryKey)})
	if err == nil {
		r.t.Cleanup(func() { c.Close() })
		_, err = c.NewSession(r.ctx(), nil)
	}
	return err
}

// Idle HTTP connections of a key make way for others of that key, and never for those of others;
// connections by AMQP do not, and are bounded. Other keys and root come all the same.
func TestOneKeyLeavesConnectionsForOthers(t *testing.T) {
	const most = 64
	r, root, sender, _, _ := keyed(t, most)
	for i := range 2 * most {
		if _, res := r.post(sender, "x"); res.StatusCode != http.StatusCreated {
			t.Fatalf("request %d of the key: %s", i, res.Status)
		}
	}
	refused := 0
	for range most {
		err := r.login(sender)
		if err == nil {
			continue
		}
		refused++
		if e, ok := errors.AsType[*amqp.ConnError](err); !ok || e.RemoteErr == nil || e.RemoteErr.Condition != amqp.ErrCondResourceLimitExceeded {
			t.Fatalf("refused by AMQP: %v, want amqp:resource-limit-exceeded", err)
		}
	}
	if refused < most/4 {
		t.Errorf("of %d connections %d were refused", most, refused)
	}
	nc, res := r.post(sender, "x")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || !res.Close {
		t.Errorf("refused by HTTP: %s %v", res.Status, res.Header)
	}
	if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a refused connection stays: %v", err)
	}
	if res, body := r.do("GET", "/api/v1/connections?top=1000", "", "Authorization", basic(root)); res.StatusCode != http.StatusOK {
		t.Errorf("root, by HTTP: %s %.200s", res.Status, body)
	}
	for i := range most / 16 {
		if err := r.login(root); err != nil {
			t.Errorf("root, %d by AMQP: %v", i, err)
		}
	}
}

// Keys of an entity are one: those that a key makes itself get no more connections.
func TestKeysOfAnEntityShareItsConnections(t *testing.T) {
	const most = 64
	r, _, sender, own, second := keyed(t, most)
	for _, key := range []access.Rule{own, second} {
		for range most {
			r.post(key, "") // its body does not come: it is not idle
		}
	}
	eventually(t, "the entity has too many", func() bool {
		nc, res := r.post(second, "x")
		nc.Close()
		return res.StatusCode == http.StatusServiceUnavailable
	})
	if _, res := r.post(sender, "x"); res.StatusCode != http.StatusCreated {
		t.Errorf("another key: %s", res.Status)
	}
}
