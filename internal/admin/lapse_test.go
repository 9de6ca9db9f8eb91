// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
)

// slowBody is a body during which something happens.
type slowBody struct {
	io.Reader
	meanwhile func()
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.meanwhile != nil {
		b.meanwhile()
		b.meanwhile = nil
	}
	return b.Reader.Read(p)
}

// A body may arrive slowly: the caller must have the right when the body has
// arrived, and the key of a queue is not valid for another queue that has its
// name by then.
func TestRightIsCheckedAgainAfterTheBody(t *testing.T) {
	const entry = `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` +
		`<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"><UserMetadata>mine</UserMetadata></QueueDescription></content></entry>`
	requests := []struct{ method, path, body string }{
		{"POST", "/a/messages", "x"},
		{"POST", "/api/v1/queues/a/messages", `{"body":"x"}`},
		{"PUT", "/api/v1/queues/a", `{"userMetadata":"mine"}`},
		{"PATCH", "/api/v1/queues/a", `{"userMetadata":"mine"}`},
		{"PUT", "/api/v1/queues/a/paused", `{"sending":true}`},
		{"PUT", "/api/v1/policies/a", `{"classes":[{"name":"mine"}]}`},
		{"PUT", "/a?api-version=2021-05", entry},
	}
	for name, change := range map[string]func(r *rig){
		"key changed": func(r *rig) {
			if _, err := r.b.UpdateQueue(r.t.Context(), entity.Queue{Name: "a"}); err != nil {
				r.t.Fatal(err)
			}
		},
		"queue deleted": func(r *rig) {
			if err := r.b.DeleteQueue(r.t.Context(), "a"); err != nil {
				r.t.Fatal(err)
			}
		},
		"another queue of that name": func(r *rig) {
			if err := r.b.DeleteQueue(r.t.Context(), "a"); err != nil {
				r.t.Fatal(err)
			}
			r.queue(keyed("a"))
		},
	} {
		for _, tt := range requests {
			t.Run(name+": "+tt.method+" "+tt.path, func(t *testing.T) {
				r := start(t)
				r.queue(keyed("a"))
				req := httptest.NewRequestWithContext(t.Context(), tt.method, "http://localhost"+tt.path,
					&slowBody{strings.NewReader(tt.body), func() { change(r) }})
				own := access.Rule{Name: "own", PrimaryKey: "key of a"}
				req.Header.Set("Authorization", access.SignToken(own, "https://localhost/a", time.Now().Add(time.Hour)))
				if strings.Contains(tt.path, "api-version") {
					req.Header.Set("If-Match", "*")
				}
				w := httptest.NewRecorder()
				r.handler.ServeHTTP(w, req)
				if w.Code != http.StatusUnauthorized {
					t.Errorf("%d %s, want 401", w.Code, w.Body)
				}
				q, err := r.b.Queue("a")
				if name == "queue deleted" {
					if err == nil {
						t.Error("the queue is there again")
					}
					return
				}
				if paused, _ := r.b.Paused("a"); err != nil || q.UserMetadata != "" || q.Policy != nil || paused.Sending || r.counts("a").Active != 0 {
					t.Errorf("the queue was changed: %+v, paused %v, %d messages (%v)", q, paused, r.counts("a").Active, err)
				}
			})
		}
	}
}

// slowReader reads an answer so slowly that something happens meanwhile.
type slowReader struct {
	*httptest.ResponseRecorder
	meanwhile func()
}

func (w *slowReader) Write(b []byte) (int, error) {
	if w.meanwhile != nil {
		w.meanwhile()
		w.meanwhile = nil
	}
	return w.ResponseRecorder.Write(b)
}

// A client that reads the messages of a queue slowly does not get those of
// another queue that has its name by then, and none after the key was changed.
func TestPeekEndsWithItsRight(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"key changed": func(r *rig) {
			if _, err := r.b.UpdateQueue(r.t.Context(), entity.Queue{Name: "a"}); err != nil {
				r.t.Fatal(err)
			}
		},
		"another queue of that name": func(r *rig) {
			if err := r.b.DeleteQueue(r.t.Context(), "a"); err != nil {
				r.t.Fatal(err)
			}
			r.queue(keyed("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.queue(keyed("a"))
			fill := func(text string) {
				r.want(201, "POST", "/api/v1/queues/a/messages", "["+strings.Repeat(`{"body":"`+text+`"},`, 2*peekWindow)+`{"body":"`+text+`"}]`)
			}
			fill("before")
			req := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/v1/queues/a/messages?max=1000", nil)
			own := access.Rule{Name: "own", PrimaryKey: "key of a"}
			req.Header.Set("Authorization", access.SignToken(own, "https://localhost/a", time.Now().Add(time.Hour)))
			w := httptest.NewRecorder()
			r.handler.ServeHTTP(&slowReader{w, func() { change(r); fill("secret") }}, req)
			if w.Code != http.StatusOK || !wellFormed(w.Body.String()) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if n := strings.Count(w.Body.String(), "before"); n > peekWindow {
				t.Errorf("it got %d messages, want those of the first window at most", n)
			}
			if strings.Contains(w.Body.String(), "secret") {
				t.Error("it got messages that were sent after its right had ended")
			}
		})
	}
}

// Rights on one queue do not control the time to live or the priority of
// messages in another: only the receiver of a request can send a reply to it.
func TestRequestsOfOneKeyDoNotTouchMessagesOfAnother(t *testing.T) {
	r := start(t)
	r.queue(keyed("mine"))
	r.queue(entity.Queue{Name: "victim"})
	own := access.Rule{Name: "own", PrimaryKey: "key of mine"}
	token := access.SignToken(own, "https://localhost/mine", time.Now().Add(time.Hour))
	const request = `{"MessageId":"order-1","ReplyTo":"victim","TimeToLive":3600}`
	ask := func(answerer ...string) {
		t.Helper()
		if got := r.as("nobody", "POST", "/mine/messages", "x", "Authorization", token, "BrokerProperties", request, "Priority", "9"); got.status != 201 {
			t.Fatalf("send: %d %s", got.status, got.body)
		}
		if got := r.as(answerer[0], "DELETE", "/mine/messages/head", "", answerer[1:]...); got.status != 200 {
			t.Fatalf("receive: %d %s", got.status, got.body)
		}
	}
	send := func() (lives bool) {
		t.Helper()
		r.want(201, "POST", "/victim/messages", "y", "BrokerProperties", `{"CorrelationId":"order-1"}`)
		ds, err := r.b.Peek(t.Context(), "victim", 0, 10, nil)
		if err != nil || len(ds) == 0 {
			t.Fatalf("peek: %d messages, %v", len(ds), err)
		}
		return ds[len(ds)-1].ExpiresAt.IsZero()
	}
	ask("nobody", "Authorization", token)
	if !send() {
		t.Error("a caller without rights on the queue has made its message expire")
	}
	ask("root")
	if send() {
		t.Error("a reply does not live as long as its request")
	}
}

// A change that waits for its turn behind others is made only if there is a right to it
// when the turn comes.
func TestRightIsCheckedWhenAChangeIsMade(t *testing.T) {
	const entry = `<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">` +
		`<QueueDescription xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"/></content></entry>`
	for path, body := range map[string]string{"/api/v1/queues/a": `{}`, "/a?api-version=2021-05": entry} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				r := startOn(t, b, func(k *access.RuleAuthority) access.Authority { return k })
				r.queue(keyed("a"))
				r.queue(entity.Queue{Name: "other"})
				goOn := make(chan struct{})
				b.OnChange(func(name string) {
					if name == "other" {
						<-goOn // a change that takes long
					}
				})
				var wg sync.WaitGroup
				wg.Go(func() { _ = b.DeleteQueue(t.Context(), "other") })
				synctest.Wait()
				wg.Go(func() { _ = b.DeleteQueue(broker.By(t.Context(), "someone"), "a") })
				synctest.Wait()
				wg.Go(func() {
					own := access.Rule{Name: "own", PrimaryKey: "key of a"}
					if got := r.with(own, "a", time.Hour, "PUT", path, body); got.status < 400 {
						t.Errorf("%d %s", got.status, got.body)
					}
				})
				synctest.Wait()
				close(goOn)
				wg.Wait()
				if _, err := b.Queue("a"); err == nil {
					t.Error("a key that was deleted with its queue has created the queue again")
				}
			})
		})
	}
}
