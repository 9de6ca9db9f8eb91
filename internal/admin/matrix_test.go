// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/script"
)

// The rights matrix of HTTP: every route with every key and every kind of token. What
// is allowed is worked out from the right that a route needs, tried, and printed in
// the guide.

// matrixOther is a queue whose name that of the one that is tried begins with.
const (
	matrixQueue = "orders/eu"
	matrixTopic = "news"
	matrixOther = "orders"
)

// credential is a column: who tries.
type credential struct {
	name   string
	of     string // whose key it is: namespace, own, other; empty is none
	rights access.Rights
	// token makes what is shown for a target, instead of a token that is good.
	token   func(rule access.Rule, target string) string
	revoked bool // the key was removed
	void    bool // the token gives nothing
	login   bool // by name and key instead of a token; not shown, as it has to be the same
}

func goodToken(rule access.Rule, target string) string {
	return access.SignToken(rule, "https://ns.example/"+target, time.Now().Add(time.Hour))
}

var credentials = []credential{
	{name: "none", void: true},
	{name: "Send", of: "namespace", rights: access.Send},
	{name: "Listen", of: "namespace", rights: access.Listen},
	{name: "Manage", of: "namespace", rights: access.Manage},
	{name: "own Send", of: "own", rights: access.Send},
	{name: "own Listen", of: "own", rights: access.Listen},
	{name: "own Manage", of: "own", rights: access.Manage},
	{name: "other's Manage", of: "other", rights: access.Manage},
	{name: "expired", of: "namespace", rights: access.Manage, void: true, token: func(rule access.Rule, target string) string {
		return access.SignToken(rule, "https://ns.example/"+target, time.Now().Add(-time.Second))
	}},
	{name: "revoked", of: "namespace", rights: access.Manage, void: true, revoked: true},
	{name: "forged", of: "namespace", rights: access.Manage, void: true, token: func(rule access.Rule, target string) string {
		rule.PrimaryKey += "?"
		return goodToken(rule, target)
	}},
	{name: "altered", of: "namespace", rights: access.Manage, void: true, token: func(rule access.Rule, target string) string {
		return strings.Replace(goodToken(rule, "elsewhere"), "elsewhere", strings.ReplaceAll(target, "/", "%2f"), 1)
	}},
	{name: "elsewhere", of: "namespace", rights: access.Manage, void: true, token: func(rule access.Rule, target string) string {
		return goodToken(rule, "elsewhere")
	}},
	{name: "login: Send", of: "namespace", rights: access.Send, login: true},
	{name: "login: Listen", of: "namespace", rights: access.Listen, login: true},
	{name: "login: Manage", of: "namespace", rights: access.Manage, login: true},
	{name: "login: revoked", of: "namespace", rights: access.Manage, login: true, void: true, revoked: true},
}

// action is a row: a request.
type action struct {
	method, path string
	shown        string        // the path in the guide
	needs        access.Rights // zero is open to all
	target       string        // the queue or topic it is about; empty is the namespace
}

// actions are all routes of the API, and those of the service.
func actions(routes []route) []action {
	fill := strings.NewReplacer("{queue}", url.PathEscape(matrixQueue), "{topic}", matrixTopic, "{subscription}", "all", "{rule}", "extra", "{seq}", "1")
	target := func(path string) string {
		switch {
		case strings.Contains(path, "{queue}"):
			return matrixQueue
		case strings.Contains(path, "{topic}"):
			return matrixTopic
		}
		return ""
	}
	var as []action
	for _, rt := range routes {
		as = append(as, action{rt.method, apiRoot + fill.Replace(rt.path), apiRoot + rt.path, rt.right, target(rt.path)})
	}
	as = append(as, action{"GET", "/metrics", "/metrics", access.Listen, ""})
	fill = strings.NewReplacer("{queue}", matrixQueue, "{topic}", matrixTopic, "{subscription}", "all", "{rule}", "extra",
		"{id}", "1", "{lock}", "00000000-0000-0000-0000-000000000001")
	for _, s := range []struct {
		method, path string
		needs        access.Rights
	}{
		{"POST", "/{queue}/messages", access.Send},
		{"POST", "/{topic}/messages", access.Send},
		{"POST", "/{queue}/messages/head", access.Listen},
		{"DELETE", "/{queue}/messages/head", access.Listen},
		{"DELETE", "/{queue}/messages/{id}/{lock}", access.Listen},
		{"PUT", "/{queue}/messages/{id}/{lock}", access.Listen},
		{"POST", "/{queue}/messages/{id}/{lock}", access.Listen},
		{"POST", "/{topic}/subscriptions/{subscription}/messages/head", access.Listen},
	} {
		path := fill.Replace(s.path)
		if strings.HasSuffix(path, "/head") {
			path += "?timeout=0"
		}
		as = append(as, action{s.method, path, s.path, s.needs, target(s.path)})
	}
	for _, path := range []string{
		"/$namespaceinfo", "/$Resources/queues", "/$Resources/topics", "/{topic}/subscriptions", "/{topic}/subscriptions/{subscription}/rules",
	} {
		as = append(as, action{"GET", fill.Replace(path) + "?api-version=2021-05", path + "?api-version=", access.Manage, target(path)})
	}
	for _, path := range []string{
		"/{queue}", "/{topic}", "/{topic}/subscriptions/{subscription}", "/{topic}/subscriptions/{subscription}/rules/{rule}",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			as = append(as, action{method, fill.Replace(path) + "?api-version=2021-05", path + "?api-version=", access.Manage, target(path)})
		}
	}
	return as
}

// matrixKey is a rule of an entity for a right.
func matrixKey(of string, r access.Rights) access.Rule {
	return access.Rule{Name: r.String(), Rights: r, PrimaryKey: r.String() + " of " + of}
}

func matrixRules(of string) entity.AuthorizationRules {
	var rules entity.AuthorizationRules
	for _, r := range []access.Rights{access.Send, access.Listen, access.Manage} {
		k := matrixKey(of, r)
		rules = append(rules, entity.AuthorizationRule{KeyName: k.Name, Rights: []entity.Right{entity.Right(k.Name)}, PrimaryKey: k.PrimaryKey})
	}
	return rules
}

// restore makes what the requests have deleted or changed.
func restore(ctx context.Context, b *broker.Broker) error {
	var errs []error
	fail := func(err error) {
		if err != nil && !errors.Is(err, broker.ErrExists) {
			errs = append(errs, err)
		}
	}
	for _, name := range []string{matrixQueue, matrixOther, "elsewhere"} {
		q := entity.Queue{Name: name, AuthorizationRules: matrixRules(name)}
		_, err := b.CreateQueue(ctx, q)
		if errors.Is(err, broker.ErrExists) {
			_, err = b.UpdateQueue(ctx, q)
		}
		fail(err)
	}
	topic := entity.Topic{Name: matrixTopic, AuthorizationRules: matrixRules(matrixTopic)}
	_, err := b.CreateTopic(ctx, topic)
	if errors.Is(err, broker.ErrExists) {
		_, err = b.UpdateTopic(ctx, topic)
	}
	fail(err)
	_, err = b.CreateSubscription(ctx, matrixTopic, entity.Subscription{Name: "all"})
	fail(err)
	return errors.Join(errs...)
}

// authorize shows what a credential has.
func (c *credential) authorize(r *http.Request, target string) {
	if c.of == "" {
		return
	}
	rule, make, at := matrixKey("", c.rights), goodToken, target
	switch {
	case c.login:
		r.SetBasicAuth(rule.Name, rule.PrimaryKey)
		return
	case c.of == "own" && target != "":
		rule = matrixKey(target, c.rights)
	case c.of == "own": // of the namespace it has none: it shows what it has
		rule, at = matrixKey(matrixQueue, c.rights), matrixQueue
	case c.of == "other":
		rule, at = matrixKey(matrixOther, c.rights), matrixOther
	}
	if c.token != nil {
		make = c.token
	}
	r.Header.Set("Authorization", make(rule, at))
}

// allowed works out what is to be expected.
func (c *credential) allowed(a *action) bool {
	switch {
	case a.needs == 0:
		return true
	case c.void, c.of == "other", c.of == "own" && a.target == "":
		return false
	}
	return c.rights.Has(a.needs)
}

func TestRightsMatrix(t *testing.T) {
	b := brokertest.Start(t)
	r := startOn(t, b, func(k *access.Keeper) access.Authority { return k })
	as := actions(r.api.routes)
	cells := make([][]string, len(as))
	for i := range credentials {
		c := &credentials[i]
		t.Run(c.name, func(t *testing.T) {
			rules := access.Rules{matrixKey("", access.Send), matrixKey("", access.Listen)}
			if !c.revoked {
				rules = append(rules, matrixKey("", access.Manage))
			}
			r.keeper.Set(rules)
			for j := range as {
				a := &as[j]
				if err := restore(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				req := httptest.NewRequestWithContext(t.Context(), a.method, "http://localhost"+a.path, strings.NewReader(""))
				c.authorize(req, a.target)
				w := httptest.NewRecorder()
				r.handler.ServeHTTP(w, req)
				allowed := w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden
				if want := c.allowed(a); allowed != want {
					t.Errorf("%s %s: %d %s, want allowed: %v", a.method, a.path, w.Code, w.Body, want)
				}
				if w.Code == http.StatusInternalServerError || w.Code == http.StatusNotImplemented {
					t.Errorf("%s %s: %d %s", a.method, a.path, w.Code, w.Body)
				}
				if !c.login {
					text := "-"
					if allowed {
						text = "yes"
					}
					cells[j] = append(cells[j], text)
				}
			}
		})
	}
	var page strings.Builder
	page.WriteString("| request | needs |")
	for _, c := range credentials {
		if !c.login {
			page.WriteString(" " + c.name + " |")
		}
	}
	page.WriteString("\n| --- | --- |" + strings.Repeat(" :-: |", len(cells[0])) + "\n")
	for i, a := range as {
		needs := a.needs.String()
		switch {
		case needs == "":
			needs = "nothing"
		case a.target == "":
			needs += " of the namespace"
		}
		fmt.Fprintf(&page, "| `%s %s` | %s | %s |\n", a.method, a.shown, needs, strings.Join(cells[i], " | "))
	}
	script.Section(t, "../../docs/guide/security.md", "rights by HTTP", page.String())
}
