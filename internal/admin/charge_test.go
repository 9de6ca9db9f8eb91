// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// charging returns a handler for the broker of r whose requests have so many bytes each, and
// what the last one was charged.
func (r *rig) charging(space int64) (ask func(method, path, body string) (status int, charged int64)) {
	var charged int64
	h := New(Parts{Broker: r.b, Log: slog.New(slog.DiscardHandler),
		Callers: func(*http.Request) access.Authority { return r.authority },
		ChargeMemory: func(_ *http.Request, n int64) bool {
			if charged+n > space {
				return false
			}
			charged += n
			return true
		}})
	return func(method, path, body string) (int, int64) {
		charged = 0
		req := httptest.NewRequestWithContext(r.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		req.SetBasicAuth("root", "root key")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Code, charged
	}
}

// paused is a client that does not read: atBody is called with the first bytes of the answer that
// are long, or are the last.
type paused struct {
	httptest.ResponseRecorder
	atBody func()
}

func (w *paused) Write(b []byte) (int, error) {
	if len(b) > 100 {
		w.atBody()
	}
	runtime.KeepAlive(b)
	return len(b), nil
}

// live returns how many bytes of the heap are in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what is in pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// While a client does not read its answer, it makes the broker hold no more than its request is
// charged.
func TestAnswersHoldWhatIsCharged(t *testing.T) {
	many := message.Draft{Body: []byte(strings.Repeat("x", 200))}
	for i := range 9_900 {
		many.Application = append(many.Application, message.Pair{Name: fmt.Sprintf("%x", i), Value: codec.Bool(true)})
	}
	wide := message.Draft{Value: new(nulls(200_000))}
	for _, c := range []struct {
		name, method, path string
		draft              *message.Draft
	}{
		{"list", "GET", apiRoot + "/queues/q/messages", &many},
		{"one", "GET", apiRoot + "/queues/q/messages/1", &many},
		{"body of one", "GET", apiRoot + "/queues/q/messages/1", &wide},
		{"headers", "DELETE", "/q/messages/head?timeout=5", &many},
		{"body", "DELETE", "/q/messages/head?timeout=5", &wide},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "q"})
			r.store("q", c.draft.Message())
			var charged int64
			h := New(Parts{Broker: r.b, Log: slog.New(slog.DiscardHandler),
				Callers:      func(*http.Request) access.Authority { return r.authority },
				ChargeMemory: func(_ *http.Request, n int64) bool { charged += n; return true }})
			req := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, nil)
			req.SetBasicAuth("root", "root key")
			asked := false
			w := &paused{atBody: func() { asked = true }}
			h.ServeHTTP(w, req) // so that what is made once is there
			if c.method == "DELETE" {
				r.store("q", c.draft.Message())
			}
			const more = 256 << 10 // of what is not the request's
			charged = 0
			before := live()
			w = &paused{atBody: func() {
				if asked = true; charged+more < live()-before {
					t.Errorf("the answer holds %d bytes, and its request is charged %d", live()-before, charged)
				}
			}}
			if h.ServeHTTP(w, req); !asked {
				t.Fatal("nothing was answered")
			}
		})
	}
}

// A message whose headers there is no memory for goes back to its queue.
func TestMessageWithoutMemoryForItsHeadersIsReturned(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	var d message.Draft
	for i := range 1000 {
		d.Application = append(d.Application, message.Pair{Name: fmt.Sprintf("p%x", i), Value: codec.Bool(true)})
	}
	r.store("q", d.Message())
	req := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/q/messages/head?timeout=5", nil)
	req.SetBasicAuth("root", "root key")
	space := int64(100_000)
	h := New(Parts{Broker: r.b, Log: slog.New(slog.DiscardHandler), Callers: func(*http.Request) access.Authority { return r.authority },
		ChargeMemory: func(_ *http.Request, n int64) bool { space -= n; return space >= 0 }})
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusTooManyRequests || len(w.Header()) > 10 {
		t.Errorf("%d with %d headers, want 429 without those of the message", w.Code, len(w.Header()))
	}
	if got := r.want(201, "POST", "/q/messages/head?timeout=5", ""); len(got.header) < 1000 {
		t.Errorf("then it is received with %d headers, want its 1000 properties", len(got.header))
	}
}

// Everything that loads bodies, and everything that lists, is charged before it does, and
// refused without space.
func TestBodiesAndListsAreCharged(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "POST", apiRoot+"/topics/t/messages", `{"body":"x"}`)
	const large, messages = 100_000, 10
	for i := range messages {
		r.want(201, "POST", apiRoot+"/queues/q/messages", fmt.Sprintf(`{"body":%q}`, strings.Repeat("x", large/(1+i))))
	}
	none, much := r.charging(8<<10), r.charging(1<<30)
	filter := "?filter=" + url.QueryEscape("sys.Label = 'no'")
	for _, c := range []struct {
		method, path, body string
		most               int64 // that it is charged with space; zero is not looked at
	}{
		{"GET", apiRoot + "/queues/q/messages" + filter, "", large + 10_000},
		{"GET", apiRoot + "/queues/q/messages/1", "", 2*large + 10_000},
		{"DELETE", apiRoot + "/queues/q/messages" + filter, "", large + 10_000},
		{"POST", apiRoot + "/policies/q/dry-run", `{"classes":[{"name":"none","when":"sys.Label = 'no'","level":1}]}`, 0},
		{"GET", apiRoot + "/queues/q/messages/1/explain", "", large + 10_000},
		{"POST", "/q/messages/head?timeout=5", "", 0},
	} {
		if got, charged := none(c.method, c.path, c.body); got != http.StatusTooManyRequests {
			t.Errorf("%s %s without memory: %d after %d bytes, want 429", c.method, c.path, got, charged)
		}
		if got, charged := much(c.method, c.path, c.body); got/100 != 2 || charged < large || c.most > 0 && charged > c.most {
			t.Errorf("%s %s: %d, charged %d bytes, want %d to %d", c.method, c.path, got, charged, large, c.most)
		}
	}
	for i := range 100 {
		r.queue(entity.Queue{Name: fmt.Sprint("listed", strings.Repeat("x", 200), i), UserMetadata: strings.Repeat("m", 1000)})
	}
	for _, path := range []string{apiRoot + "/queues", "/$Resources/Queues?api-version=2021-05", "/metrics"} {
		if got, charged := none("GET", path, ""); got != http.StatusTooManyRequests {
			t.Errorf("%s without memory: %d after %d bytes, want 429", path, got, charged)
		}
		if got, charged := much("GET", path, ""); got != http.StatusOK || charged < 8<<10 {
			t.Errorf("%s: %d, charged %d bytes", path, got, charged)
		}
	}
	got := r.want(200, "GET", "/$Resources/Queues?api-version=2021-05&%24top=1000", "")
	var feed struct {
		Entries []struct{} `xml:"entry"`
	}
	if err := xml.Unmarshal([]byte(got.body), &feed); err != nil || len(feed.Entries) != 101 {
		t.Errorf("a feed in pieces has %d entries, want 101: %v", len(feed.Entries), err)
	}
}
