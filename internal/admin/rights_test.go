// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
)

// keyed is a queue with a rule for everything.
func keyed(name string) entity.Queue {
	return entity.Queue{Name: name, AuthorizationRules: entity.AuthorizationRules{
		{KeyName: "own", Rights: []entity.Right{entity.Manage}, PrimaryKey: "key of " + name},
	}}
}

// with sends a request with a token for a resource.
func (r *rig) with(rule access.Rule, resource string, life time.Duration, method, path, body string) answered {
	r.t.Helper()
	token := access.SignToken(rule, "https://localhost/"+resource, time.Now().Add(life))
	return r.as("nobody", method, path, body, "Authorization", token)
}

// 11: the key of queue a neither gives access to nor creates a queue whose name
// begins with a/.
func TestKeyOfAQueueEndsAtTheQueue(t *testing.T) {
	r := start(t)
	r.queue(keyed("a"))
	r.queue(entity.Queue{Name: "a/b"})
	own := access.Rule{Name: "own", PrimaryKey: "key of a"}
	const entry = `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` +
		`<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>`
	tests := []struct {
		method, path, body string
		allowed            bool
	}{
		{"GET", "/api/v1/queues/a", "", true},
		{"GET", "/a?api-version=2021-05", "", true},
		{"POST", "/a/messages", "x", true},
		{"GET", "/api/v1/queues/a%2Fb", "", false},
		{"GET", "/api/v1/queues/A%2FB", "", false},
		{"GET", "/api/v1/queues/x:%2F%2Fh%2Fa%252Fb", "", false},
		{"PUT", "/api/v1/queues/a%2Fnew", "{}", false},
		{"DELETE", "/api/v1/queues/a%2Fb", "", false},
		{"GET", "/a/b?api-version=2021-05", "", false},
		{"PUT", "/a/new?api-version=2021-05", entry, false},
		{"POST", "/a/b/messages", "x", false},
		{"POST", "/a%2Fb/messages", "x", false},
		{"PUT", "/api/v1/queues/a", `{"forwardTo":"a/b"}`, false},
		{"PUT", "/api/v1/queues/a", `{"forwardTo":"sb://h/a%2Fb"}`, false},
	}
	for _, resource := range []string{"a", "a/b"} {
		for _, tt := range tests {
			got := r.with(own, resource, time.Hour, tt.method, tt.path, tt.body)
			allowed := got.status != http.StatusUnauthorized && got.status != http.StatusForbidden
			if want := tt.allowed && resource == "a"; allowed != want {
				t.Errorf("signed for %s: %s %s: %d %s, want allowed: %v", resource, tt.method, tt.path, got.status, got.body, want)
			}
		}
	}
}

// A caller with a key for a name can find out that no entity has it. A caller
// without one cannot: without a key, with a key of another queue, with a token
// for another path or an expired one.
func TestAbsentNamesAreOnlyReportedWithAKey(t *testing.T) {
	r := start(t)
	r.queue(keyed("a"))
	own, listener := access.Rule{Name: "own", PrimaryKey: "key of a"}, testRules[2]
	forged := access.Rule{Name: "listener", PrimaryKey: "guessed"}
	for _, tt := range []struct {
		who      string
		rule     access.Rule
		resource string
		life     time.Duration
		want     int
	}{
		{"Listen of the namespace", listener, "", time.Hour, http.StatusNotFound},
		{"Listen, signed for the name", listener, "a/none", time.Hour, http.StatusNotFound},
		{"Listen, signed for another", listener, "a/other", time.Hour, http.StatusUnauthorized},
		{"Listen, expired", listener, "", -time.Hour, http.StatusUnauthorized},
		{"a wrong key", forged, "", time.Hour, http.StatusUnauthorized},
		{"the key of another queue", own, "a", time.Hour, http.StatusUnauthorized},
		{"the key of another queue, signed for the name", own, "a/none", time.Hour, http.StatusUnauthorized},
	} {
		for _, method := range []string{"GET", "DELETE"} {
			if got := r.with(tt.rule, tt.resource, tt.life, method, "/a/none?api-version=2021-05", ""); got.status != tt.want {
				t.Errorf("%s: %s: %d %s, want %d", tt.who, method, got.status, got.body, tt.want)
			}
		}
		if got := r.with(tt.rule, tt.resource, tt.life, "PUT", "/a/none?api-version=2021-05", ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s: PUT: %d %s, want 401", tt.who, got.status, got.body)
		}
	}
	if got := r.as("nobody", "GET", "/a/none?api-version=2021-05", ""); got.status != http.StatusUnauthorized {
		t.Errorf("nobody: %d %s, want 401", got.status, got.body)
	}
}

// A request that waits for a message must still have its right when one comes.
func TestReceiveIsCheckedAgainAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t)
		r := startOn(t, b, func(k *access.RuleAuthority) access.Authority { return k })
		r.queue(entity.Queue{Name: "q"})
		got := make(chan answered, 1)
		go func() { // ends with the request, which the test waits for
			got <- r.with(testRules[2], "q", time.Minute, "DELETE", "/q/messages/head?timeout=300", "")
		}()
		time.Sleep(2 * time.Minute)
		if late := r.as("sender", "POST", "/q/messages", "x"); late.status != http.StatusCreated {
			t.Fatalf("send: %d %s", late.status, late.body)
		}
		if a := <-got; a.status != http.StatusUnauthorized {
			t.Errorf("receive after the token ended: %d %s, want 401", a.status, a.body)
		}
		if n := r.counts("q").Active; n != 1 {
			t.Errorf("q has %d messages, want the one that no caller may receive", n)
		}
	})
}

// brokenBody is a body whose sender disconnects in the middle of it.
type brokenBody struct{ io.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A client that leaves in the middle of its request is no error of ours.
func TestClientThatLeavesIsNoError(t *testing.T) {
	b := brokertest.Start(t)
	if _, err := b.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	authority := access.NewRuleAuthority(testRules, nil)
	h := New(Parts{Broker: b, Log: slog.New(slog.NewTextHandler(&log, nil)), Callers: func(*http.Request) access.Authority { return authority }})
	for _, path := range []string{"/api/v1/queues/q/messages", "/q/messages", "/q?api-version=2021-05"} {
		for _, gone := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if gone {
				cancel(io.ErrClosedPipe) // as a server may word it
			}
			method := http.MethodPost
			if strings.Contains(path, "api-version") {
				method = http.MethodPut
			}
			req := httptest.NewRequestWithContext(ctx, method, "http://localhost"+path, brokenBody{strings.NewReader("[{")})
			req.SetBasicAuth("root", "root key")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if w.Code < 400 {
				t.Errorf("%s: %d, want an error", path, w.Code)
			}
			cancel(nil)
		}
	}
	if text := log.String(); strings.Contains(text, "ERROR") {
		t.Errorf("the log says:\n%s", text)
	}
}

// Every route is in the table of rights, and every row of it has a route.
func TestRoutesAreInTheTableOfRights(t *testing.T) {
	left := map[string]bool{}
	for _, o := range access.Operations() {
		for _, id := range o.HTTP {
			left[id] = true
		}
	}
	a := newAPI(Parts{}, time.Time{}, nil)
	for _, id := range []string{"atom", "restSend", "restReceive"} {
		delete(left, id)
	}
	for _, rt := range a.routes {
		if !left[rt.id] {
			t.Errorf("%s %s (%s) is not in the table of rights", rt.method, rt.path, rt.id)
		}
		delete(left, rt.id)
	}
	for id := range left {
		t.Errorf("the table of rights has %s, which is no route", id)
	}
}
