// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/internal/access"
)

// do sends a request; headers are names and values, Host among them.
func (r *running) do(method, path, body string, headers ...string) (*http.Response, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header[headers[i]] = []string{headers[i+1]}
	}
	if r.up.NewKey != nil && headers == nil {
		req.SetBasicAuth(r.up.NewKey.Name, r.up.NewKey.PrimaryKey)
	}
	client := &http.Transport{DisableKeepAlives: true}
	res, err := client.RoundTrip(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res, string(text)
}

// basic returns the header of a rule's name and key.
func basic(rule access.Rule) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(rule.Name, rule.PrimaryKey)
	return r.Header.Get("Authorization")
}

// In development this machine is accepted, but not a
// page that its user is reading, by whatever name it comes.
func TestDevelopmentKeepsPagesOut(t *testing.T) {
	r := run(t, func(c *Config) { c.Security.Hosts = []string{"broker.example:5300"} })
	known := basic(access.Development)
	for _, tt := range []struct {
		what, method string
		want         int
		headers      []string
	}{
		{"curl", "GET", 200, []string{"Host", "localhost:5300"}},
		{"by address", "GET", 200, []string{"Host", "127.0.0.1:5300"}},
		{"by IPv6", "GET", 200, []string{"Host", "[::1]:5300"}},
		{"by a full name", "GET", 200, []string{"Host", "LOCALHOST.:5300"}},
		{"by a name of ours", "GET", 200, []string{"Host", "Broker.example"}},
		{"same origin", "PATCH", 200, []string{"Host", "localhost:5300", "Origin", "http://localhost:5300", "Sec-Fetch-Site", "same-origin"}},
		{"another port", "PATCH", 403, []string{"Host", "localhost:5300", "Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}},
		{"another site", "PATCH", 403, []string{"Host", "localhost:5300", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}},
		{"another origin", "PATCH", 403, []string{"Host", "localhost:5300", "Origin", "https://evil.example"}},
		{"no origin in particular", "PATCH", 403, []string{"Host", "localhost:5300", "Origin", "null"}},
		{"rebound name", "GET", 403, []string{"Host", "evil.example:5300"}},
		{"rebound name of the same origin", "PATCH", 403, []string{"Host", "evil.example:5300", "Origin", "http://evil.example:5300"}},
		{"rebound name with the known key", "GET", 403, []string{"Host", "evil.example:5300", "Authorization", known}},
		{"name that looks like ours", "GET", 403, []string{"Host", "localhost.evil.example"}},
		{"passed on by a proxy", "GET", 401, []string{"X-Forwarded-For", "203.0.113.7"}},
		{"passed on by a proxy, with the known key", "GET", 401, []string{"Forwarded", "for=203.0.113.7", "Authorization", known}},
	} {
		if res, body := r.do(tt.method, "/api/v1/queues/q", "{}", tt.headers...); res.StatusCode != tt.want {
			t.Errorf("%s: %s %s, want %d", tt.what, res.Status, body, tt.want)
		}
	}
}

// Number 17: also where a key is needed, because a browser keeps a name and key that
// its user once gave it and sends them along with what any page asks for.
func TestPagesCannotUseWhatABrowserKeeps(t *testing.T) {
	r := run(t, func(c *Config) { c.Security.Dev = false })
	key := basic(*r.up.NewKey)
	for _, tt := range []struct {
		what    string
		want    int
		headers []string
	}{
		{"program", 201, []string{"Authorization", key, "Host", "any.example"}},
		{"form", 403, []string{"Authorization", key, "Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}},
		{"form of an old browser", 403, []string{"Authorization", key, "Origin", "https://evil.example"}},
		{"own page", 201, []string{"Authorization", key, "Sec-Fetch-Site", "same-origin"}},
	} {
		if res, body := r.do("POST", "/q/messages", "x", tt.headers...); res.StatusCode != tt.want {
			t.Errorf("%s: %s %s, want %d", tt.what, res.Status, body, tt.want)
		}
	}
}

// Number 17: a WebSocket is a door like any other.
func TestWebSocketKeepsPagesOut(t *testing.T) {
	dev := run(t, nil)
	strict := run(t, func(c *Config) { c.Security.Dev = false })
	named := run(t, func(c *Config) { c.Security.Dev, c.Security.Hosts = false, []string{"broker.example"} })
	for _, tt := range []struct {
		what         string
		r            *running
		host, origin string
		ok           bool
	}{
		{"program", dev, "", "", true},
		{"program by localhost", dev, "localhost:5672", "", true},
		{"page of another site", dev, "localhost:5672", "https://evil.example", false},
		{"page of another port", dev, "localhost:5672", "http://localhost:3000", false},
		{"page by a rebound name", dev, "evil.example:5672", "http://evil.example:5672", false},
		{"program by a rebound name", dev, "evil.example:5672", "", false},
		{"page with a key of its own", strict, "broker.example", "https://shop.example", true},
		{"page with a key of its own, by our name", named, "broker.example", "https://shop.example", true},
		{"by a name that is not ours", named, "evil.example", "", false},
	} {
		o := &websocket.DialOptions{Subprotocols: []string{"amqp"}, Host: tt.host, HTTPHeader: http.Header{}}
		if tt.origin != "" {
			o.HTTPHeader.Set("Origin", tt.origin)
		}
		ws, res, err := websocket.Dial(tt.r.ctx(), "ws://"+tt.r.addr+pathWebSocket, o)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v, want ok %v", tt.what, err, tt.ok)
		}
		if err == nil {
			ws.CloseNow()
		} else if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s, want 403", tt.what, res.Status)
		}
	}
}

// Number 17: what we answer is data, and no browser is to make anything else of it.
func TestAnswersAreNoPages(t *testing.T) {
	r := run(t, nil)
	r.do("POST", "/q/messages", "<script>alert(1)</script>", "Content-Type", "text/html", "Refresh", "0;url=https://evil.example",
		"Mine", "5")
	for _, tt := range []struct{ method, path string }{
		{"DELETE", "/q/messages/head?timeout=0"}, {"GET", "/healthz"}, {"GET", "/api/v1/queues"}, {"GET", "/$Resources/queues?api-version=2021-05"},
		{"GET", "/metrics"}, {"GET", "/nowhere"}, {"POST", "/nowhere/messages"},
	} {
		res, body := r.do(tt.method, tt.path, "")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Refresh": "",
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", tt.method, tt.path, name, got, want)
			}
		}
		if strings.Contains(body, "<script>") && (res.Header.Get("Content-Disposition") != "attachment" || res.Header.Get("Content-Type") != "text/html" ||
			res.Header.Get("Mine") != "5") {
			t.Errorf("a message comes as %v", res.Header)
		}
	}
}

// What a proxy passes on is not of this machine, be it
// by WebSocket.
func TestProxiedWebSocketNeedsAKey(t *testing.T) {
	r := run(t, nil)
	for header, ok := range map[string]bool{"": true, "X-Forwarded-For": false} {
		o := &websocket.DialOptions{Subprotocols: []string{"amqp"}, HTTPHeader: http.Header{}}
		if header != "" {
			o.HTTPHeader.Set(header, "203.0.113.7")
		}
		ws, _, err := websocket.Dial(r.ctx(), "ws://"+r.addr+pathWebSocket, o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := amqp.NewConn(r.ctx(), websocket.NetConn(r.ctx(), ws, websocket.MessageBinary), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession(r.ctx(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.NewSender(r.ctx(), "q", nil); (err == nil) != ok {
			t.Errorf("with header %q: %v, want ok %v", header, err, ok)
		}
		c.Close()
	}
}
