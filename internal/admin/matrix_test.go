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

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/access/accesstest"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/script"
)

// The rights matrix of HTTP: every route with every key and every kind of token. What
// is allowed is worked out from the right that a route needs, tried, and printed in
// the guide.

const (
	matrixQueue = "orders/eu"
	matrixTopic = "news"
	matrixHub   = "clicks"
)

// credential is a column: the caller.
type credential struct{ accesstest.Credential }

// base is where the resources of tokens are.
const base = "https://ns.example/"

// action is a row: a request.
type action struct {
	method, path string
	shown        string        // the path in the guide
	needs        access.Rights // zero is open to all
	target       string        // the queue or topic it is about; empty is the namespace
}

// actions are all routes of the API, and those of the service.
func actions(routes []route) []action {
	fill := strings.NewReplacer("{hub}", matrixHub, "{group}", "g", "{partition}", "0", "{queue}", url.PathEscape(matrixQueue), "{topic}", matrixTopic, "{subscription}", "all", "{rule}", "extra", "{seq}", "1", "{pool}", "low")
	target := func(path string) string {
		switch {
		case strings.Contains(path, "{queue}"):
			return matrixQueue
		case strings.Contains(path, "{topic}"):
			return matrixTopic
		case strings.Contains(path, "{hub}"):
			return matrixHub
		}
		return ""
	}
	var as []action
	for _, rt := range routes {
		as = append(as, action{rt.method, apiRoot + fill.Replace(rt.path), apiRoot + rt.path, rt.right, target(rt.path)})
	}
	as = append(as, action{"GET", "/metrics", "/metrics", access.Listen, ""})
	fill = strings.NewReplacer("{hub}", matrixHub, "{group}", "g", "{partition}", "0", "{queue}", matrixQueue, "{topic}", matrixTopic, "{subscription}", "all", "{rule}", "extra",
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
		"/$Resources/eventhubs", "/{hub}/consumergroups", "/{hub}/consumergroups/{group}/partitions", "/{hub}/consumergroups/{group}/partitions/{partition}",
	} {
		as = append(as, action{"GET", fill.Replace(path) + "?api-version=2021-05", path + "?api-version=", access.Manage, target(path)})
	}
	for _, path := range []string{
		"/{queue}", "/{topic}", "/{topic}/subscriptions/{subscription}", "/{topic}/subscriptions/{subscription}/rules/{rule}",
		"/{hub}", "/{hub}/consumergroups/{group}",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			as = append(as, action{method, fill.Replace(path) + "?api-version=2021-05", path + "?api-version=", access.Manage, target(path)})
		}
	}
	return as
}

// restore makes what the requests have deleted or changed.
func restore(ctx context.Context, b *broker.Broker) error {
	var errs []error
	fail := func(err error) {
		if err != nil && !errors.Is(err, broker.ErrExists) {
			errs = append(errs, err)
		}
	}
	for _, name := range []string{matrixQueue, accesstest.Other, "elsewhere"} {
		q := entity.Queue{Name: name, AuthorizationRules: accesstest.Rules(name)}
		_, err := b.CreateQueue(ctx, q)
		if errors.Is(err, broker.ErrExists) {
			_, err = b.UpdateQueue(ctx, q)
		}
		fail(err)
	}
	topic := entity.Topic{Name: matrixTopic, AuthorizationRules: accesstest.Rules(matrixTopic)}
	_, err := b.CreateTopic(ctx, topic)
	if errors.Is(err, broker.ErrExists) {
		_, err = b.UpdateTopic(ctx, topic)
	}
	fail(err)
	hub := entity.Hub{Name: matrixHub, PartitionCount: 1, AuthorizationRules: accesstest.Rules(matrixHub)}
	_, err = b.CreateHub(ctx, hub)
	if errors.Is(err, broker.ErrExists) {
		_, err = b.UpdateHub(ctx, hub)
	}
	fail(err)
	_, err = b.CreateConsumerGroup(ctx, matrixHub, entity.ConsumerGroup{Name: "g"})
	fail(err)
	_, err = b.CreateSubscription(ctx, matrixTopic, entity.Subscription{Name: "all"})
	fail(err)
	return errors.Join(errs...)
}

// authorize shows what a credential has.
func (c *credential) authorize(r *http.Request, target string) {
	if c.Of == accesstest.Nobody {
		return
	}
	rule, at := accesstest.Key("", c.Rights), target
	switch {
	case c.Login:
		r.SetBasicAuth(rule.Name, rule.PrimaryKey)
		return
	case c.Of == accesstest.Own && target != "":
		rule = accesstest.Key(target, c.Rights)
	case c.Of == accesstest.Own: // of the namespace it has none: it shows what it has
		rule, at = accesstest.Key(matrixQueue, c.Rights), matrixQueue
	case c.Of == accesstest.Another:
		rule, at = accesstest.Key(accesstest.Other, c.Rights), accesstest.Other
	}
	r.Header.Set("Authorization", c.Token(rule, at))
}

// allowed works out what is to be expected.
func (c *credential) allowed(a *action) bool {
	switch {
	case a.needs == 0:
		return true
	case c.Void, c.Of == accesstest.Another, c.Of == accesstest.Own && a.target == "":
		return false
	}
	return c.Rights.Has(a.needs)
}

func TestRightsMatrix(t *testing.T) {
	b := brokertest.Start(t)
	r := startOn(t, b, func(k *access.RuleAuthority) access.Authority { return k })
	as := actions(r.api.routes)
	cells := make([][]string, len(as))
	for _, who := range accesstest.Credentials(base) {
		c := &credential{who}
		t.Run(c.Name, func(t *testing.T) {
			rules := access.Rules{accesstest.Key("", access.Send), accesstest.Key("", access.Listen)}
			if !c.Revoked {
				rules = append(rules, accesstest.Key("", access.Manage))
			}
			r.authority.Set(rules)
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
				if !c.Login {
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
	page.WriteString(accesstest.Heading("request", base))
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
