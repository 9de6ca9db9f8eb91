// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/metrics"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
)

// rig is a broker on a memory disk behind the handler.
type rig struct {
	t         testing.TB
	b         *broker.Broker
	authority *access.RuleAuthority
	handler   http.Handler
	api       *api
	doc       document
}

var testRules = access.Rules{
	{Name: "root", Rights: access.All, PrimaryKey: "root key"},
	{Name: "sender", Rights: access.Send, PrimaryKey: "sender key"},
	{Name: "listener", Rights: access.Listen, PrimaryKey: "listener key"},
}

// start runs a broker that knows testRules.
func start(t testing.TB) *rig {
	return startWith(t, func(k *access.RuleAuthority) access.Authority { return k })
}

func startWith(t testing.TB, authority func(*access.RuleAuthority) access.Authority) *rig {
	t.Helper()
	return startOn(t, brokertest.Start(t), authority)
}

func startOn(t testing.TB, b *broker.Broker, wrap func(*access.RuleAuthority) access.Authority) *rig {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	authority := access.NewRuleAuthority(testRules, func(name string) (access.Entity, bool) {
		id, rules, ok := b.Authorization(name)
		return access.Entity{ID: id, Rules: access.OfEntity(rules)}, ok
	})
	who := wrap(authority)
	h := New(Parts{Broker: b, Log: log, Callers: func(*http.Request) access.Authority { return who },
		Connections: func(_ context.Context, skip, top int) ([]Connection, int) {
			all := make([]Connection, 3)
			for i := range all {
				all[i] = Connection{Peer: fmt.Sprintf("10.0.0.%d:1", 1+i), Since: time.Unix(int64(1+i), 0).UTC(), Links: make([]Link, i)}
				for l := range all[i].Links {
					all[i].Links[l] = Link{Name: fmt.Sprint("l", l), Address: "q", Role: "sender"}
				}
			}
			return all[min(skip, 3):min(skip+top, 3)], 3
		},
		ConnectionCount: func() int { return 3 },
		Memory: func() budget.Usage {
			return budget.Usage{Limit: 900, Used: 60, Unauthenticated: 10, Known: 20, Unsynced: 30, Waiting: 2,
				StoredLimit: 800, StoredMessages: 4, MessagesLimit: 600, StoredDefinitions: 5, StoredGroups: 6}
		},
		Disk: func() metrics.Disk {
			return metrics.Disk{Free: 5000, Available: 700, Reserved: 300, Unsynced: 20, Full: true}
		}})
	r := &rig{t: t, b: b, authority: authority, handler: h, api: h.(*router).api.(*api)}
	if err := json.Unmarshal(r.api.document, &r.doc); err != nil {
		t.Fatalf("the document: %v", err)
	}
	return r
}

// answered is a response that was read to its end.
type answered struct {
	status int
	header http.Header
	body   string
}

// as sends a request with the credentials of a rule; nobody has none.
func (r *rig) as(rule, method, path, body string, headers ...string) answered {
	r.t.Helper()
	req := httptest.NewRequestWithContext(r.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if rule != "nobody" {
		req.SetBasicAuth(rule, rule+" key")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	got := answered{w.Code, w.Header(), w.Body.String()}
	if strings.HasPrefix(path, apiRoot) && !req.URL.Query().Has("api-version") {
		r.checkAnswer(req, got)
	}
	return got
}

// do is as for the rule that may do everything.
func (r *rig) do(method, path, body string, headers ...string) answered {
	r.t.Helper()
	return r.as("root", method, path, body, headers...)
}

// want is do for a request whose status is known.
func (r *rig) want(status int, method, path, body string, headers ...string) answered {
	r.t.Helper()
	got := r.do(method, path, body, headers...)
	if got.status != status {
		r.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, got.status, got.body, status)
	}
	return got
}

// into decodes the body.
func (got answered) into(t testing.TB, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(got.body), to); err != nil {
		t.Fatalf("decode %s: %v", got.body, err)
	}
}

// code is the code of an error.
func (got answered) code() string {
	var f failure
	_ = json.Unmarshal([]byte(got.body), &f)
	return f.Error.Code
}

func (r *rig) queue(q entity.Queue) {
	r.t.Helper()
	if _, err := r.b.CreateQueue(r.t.Context(), q); err != nil {
		r.t.Fatalf("create %q: %v", q.Name, err)
	}
}

func (r *rig) topic(name string, subs ...entity.Subscription) {
	r.t.Helper()
	if _, err := r.b.CreateTopic(r.t.Context(), entity.Topic{Name: name}); err != nil {
		r.t.Fatalf("create %q: %v", name, err)
	}
	for _, s := range subs {
		if _, err := r.b.CreateSubscription(r.t.Context(), name, s); err != nil {
			r.t.Fatalf("create %q: %v", s.Name, err)
		}
	}
}

func (r *rig) counts(addr string) broker.Counts {
	r.t.Helper()
	rt, err := r.b.Runtime(r.t.Context(), addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return rt.Counts
}

// wellFormed reports whether a body is a single JSON value.
func wellFormed(body string) bool {
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	var v any
	if d.Decode(&v) != nil {
		return false
	}
	_, err := d.Token()
	return err == io.EOF
}
