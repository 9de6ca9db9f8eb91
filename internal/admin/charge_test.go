// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/entity"
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
