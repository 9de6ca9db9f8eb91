// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// properties reads the header BrokerProperties of an answer.
func (got answered) properties(t *testing.T) map[string]any {
	t.Helper()
	values := got.header["BrokerProperties"]
	if len(values) != 1 {
		t.Fatalf("headers %v, want one BrokerProperties", got.header)
	}
	var p map[string]any
	if err := json.Unmarshal([]byte(values[0]), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// location is the path of a locked message.
func (got answered) location() string {
	return strings.TrimPrefix(got.header.Get("Location"), "http://localhost")
}

func TestRESTRoundTrip(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "site/q"})
	r.want(201, "POST", "/site/q/messages?timeout=60&api-version=2015-01", `{"a":1}`, "Content-Type", "application/json",
		"BrokerProperties", `{"MessageId":"m","Label":"l","CorrelationId":"c","TimeToLive":3600,"To":"t","ReplyTo":"r","PartitionKey":"p"}`,
		"Priority", `"High"`, "Bare", "text", "Number", "5", "Fraction", "1.5", "Flag", "true", "User-Agent", "curl", "X-Umlaut", `"gr\u00fc\u00dfe"`)
	got := r.want(201, "POST", "/site/q/messages/head?timeout=5", "")
	if got.body != `{"a":1}` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("received %q of %s", got.body, got.header.Get("Content-Type"))
	}
	for name, want := range map[string]string{"Priority": `"High"`, "Bare": `"text"`, "Number": "5", "Fraction": "1.5", "Flag": "true",
		"X-Umlaut": `"gr\u00fc\u00dfe"`, "User-Agent": ""} {
		if v := got.header.Get(name); v != want {
			t.Errorf("property %s is %s, want %s", name, v, want)
		}
	}
	p := got.properties(t)
	for name, want := range map[string]any{"MessageId": "m", "Label": "l", "CorrelationId": "c", "TimeToLive": 3600.0, "SequenceNumber": 1.0,
		"DeliveryCount": 1.0, "State": "Active", "To": "t", "ReplyTo": "r", "PartitionKey": "p"} {
		if p[name] != want {
			t.Errorf("%s is %v, want %v", name, p[name], want)
		}
	}
	r.want(200, "POST", got.location(), "") // renew
	r.want(200, "PUT", got.location(), "")  // unlock
	r.want(404, "PUT", got.location(), "")  // no longer locked
	again := r.want(201, "POST", "/site/q/messages/head?timeout=5", "")
	if again.properties(t)["DeliveryCount"] != 2.0 {
		t.Errorf("second delivery: %v", again.properties(t))
	}
	r.want(200, "DELETE", again.location(), "")
	r.want(404, "DELETE", again.location(), "")
	r.want(204, "POST", "/site/q/messages/head?timeout=0", "")
	r.want(204, "DELETE", "/site/q/messages/head?timeout=0", "")
	if c := r.counts("site/q"); c.Total() != 0 {
		t.Errorf("left: %+v", c)
	}
}

func TestRESTBatchAndTopic(t *testing.T) {
	r := start(t)
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "POST", "/t/messages", `[{"Body":"one","BrokerProperties":{"Label":"a","TimeToLiveTimeSpan":"0.00:00:40"}},
		{"Body":"two","UserProperties":{"Priority":"High","n":5}}]`, "Content-Type", "application/vnd.microsoft.servicebus.json")
	two := r.want(200, "DELETE", "/t/subscriptions/s/messages/head?timeout=5", "") // the urgent one first
	if two.body != "two" || two.header.Get("Priority") != `"High"` || two.header.Get("N") != "" && two.header["n"][0] != "5" {
		t.Errorf("first: %q %v", two.body, two.header)
	}
	one := r.want(200, "DELETE", "/t/Subscriptions/s/messages/head?timeout=5", "")
	if p := one.properties(t); one.body != "one" || p["Label"] != "a" || p["TimeToLive"] != 40.0 {
		t.Errorf("second: %q %v", one.body, p)
	}
	r.want(204, "DELETE", "/t/Subscriptions/s/messages/head?timeout=0", "")
}

func TestRESTRefusals(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.queue(entity.Queue{Name: "sessions", RequiresSession: true})
	r.topic("t", entity.Subscription{Name: "s"})
	const batch = "application/vnd.microsoft.servicebus.json"
	for _, tt := range []struct {
		method, path, body string
		status             int
		headers            []string
	}{
		{"POST", "/none/messages", "x", 410, nil},
		{"POST", "/none/messages/head", "", 410, nil},
		{"DELETE", "/none/messages/1/2", "", 410, nil},
		{"DELETE", "/q/messages/1/00000000-0000-0000-0000-000000000001", "", 404, nil},
		{"DELETE", "/q/messages/1/nonsense", "", 404, nil},
		{"PUT", "/q/messages", "x", 405, nil},
		{"GET", "/q/messages/head", "", 405, nil},
		{"GET", "/q/messages/1/2", "", 405, nil},
		{"POST", "/q/messages/head?timeout=x", "", 400, nil},
		{"POST", "/t/messages/head?timeout=0", "", 400, nil},
		{"POST", "/t/subscriptions/s/messages", "x", 400, nil},
		{"POST", "/q/$DeadLetterQueue/messages", "x", 400, nil},
		{"POST", "/sessions/messages/head?timeout=0", "", 400, nil},
		{"POST", "/sessions/messages", "x", 400, nil},
		{"POST", "/sessions/messages", "x", 201, []string{"BrokerProperties", `{"SessionId":"s"}`}},
		{"POST", "/q/messages", strings.Repeat("x", 257<<10), 413, nil},
		{"POST", "/q/messages", strings.Repeat("x", 256<<10), 413, nil}, // with what is around it
		{"POST", "/q/messages", "x", 400, []string{"BrokerProperties", `{`}},
		{"POST", "/q/messages", "x", 400, []string{"BrokerProperties", `{"TimeToLive":-1}`}},
		{"POST", "/q/messages", "x", 400, []string{"BrokerProperties", `{"TimeToLiveTimeSpan":"soon"}`}},
		{"POST", "/q/messages", "x", 400, []string{"BrokerProperties", `{"ScheduledEnqueueTimeUtc":"soon"}`}},
		{"POST", "/q/messages", "x", 400, []string{"Mine", `"open`}},
		{"POST", "/q/messages", "[]", 400, []string{"Content-Type", batch}},
		{"POST", "/q/messages", "{", 400, []string{"Content-Type", batch}},
		{"POST", "/q/messages", `[{"UserProperties":{"a":{}}}]`, 400, []string{"Content-Type", batch}},
		{"POST", "/q/messages", strings.Repeat(" ", 5<<20), 413, []string{"Content-Type", batch}},
	} {
		got := r.do(tt.method, tt.path, tt.body, tt.headers...)
		if got.status != tt.status {
			t.Errorf("%s %s %v: %d %s, want %d", tt.method, tt.path, tt.headers, got.status, got.body, tt.status)
		}
	}
	for _, tt := range []struct {
		rule, method, path string
		status             int
	}{
		{"nobody", "POST", "/q/messages", 401}, {"listener", "POST", "/q/messages", 401}, {"sender", "POST", "/q/messages", 201},
		{"sender", "DELETE", "/q/messages/head?timeout=0", 401}, {"listener", "DELETE", "/q/messages/head?timeout=5", 200},
		{"sender", "DELETE", "/q/messages/1/2", 401},
	} {
		if got := r.as(tt.rule, tt.method, tt.path, "x"); got.status != tt.status {
			t.Errorf("%s: %s %s: %d %s, want %d", tt.rule, tt.method, tt.path, got.status, got.body, tt.status)
		}
	}
}

// Properties of a message cannot set headers of the server.
func TestRESTPropertiesStayProperties(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	s, err := r.b.OpenSender("q", broker.SenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d := message.Draft{Body: []byte("x"), Application: []message.Pair{
		{Name: "Set-Cookie", Value: codec.String("a=b")}, {Name: "Transfer-Encoding", Value: codec.String("chunked")},
		{Name: "bad name\r\n", Value: codec.String("x")}, {Name: "line", Value: codec.String("a\r\nB: c")},
	}}
	done := make(chan error, 1)
	s.Send([]*message.Message{d.Message()}, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	got := r.want(200, "DELETE", "/q/messages/head?timeout=5", "")
	if len(got.header["Set-Cookie"])+len(got.header["Transfer-Encoding"]) > 0 || got.header["line"][0] != `"a\r\nB: c"` {
		t.Errorf("headers: %v", got.header)
	}
}

// A client that leaves while it waits takes nothing with it.
func TestRESTClientThatLeaves(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	ctx, leave := context.WithCancel(t.Context())
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/q/messages/head?timeout=600", nil)
	req.SetBasicAuth("root", "root key")
	done := make(chan struct{})
	go func() { // ends with the request
		defer close(done)
		r.handler.ServeHTTP(httptest.NewRecorder(), req)
	}()
	leave()
	<-done
	r.want(201, "POST", "/q/messages", "x")
	got := r.want(201, "POST", "/q/messages/head?timeout=5", "")
	if got.properties(t)["DeliveryCount"] != 1.0 {
		t.Errorf("the message was delivered to another receiver before: %v", got.properties(t))
	}
}

// A message for which there is no memory stays where it is, uncounted.
func TestRESTReceiveWithoutMemory(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.want(201, "POST", "/q/messages", strings.Repeat("x", 1000))
	var asked int64
	h := New(Parts{Broker: r.b, Log: r.api.Log, Callers: r.api.Callers, ChargeMemory: func(_ *http.Request, n int64) bool { asked = n; return false }})
	for _, method := range []string{"DELETE", "POST"} {
		req := httptest.NewRequestWithContext(t.Context(), method, "http://localhost/q/messages/head?timeout=5", nil)
		req.SetBasicAuth("root", "root key")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || asked < 2000 {
			t.Errorf("%s: %d %s, for %d bytes", method, w.Code, w.Body, asked)
		}
	}
	got := r.want(201, "POST", "/q/messages/head?timeout=5", "")
	if got.properties(t)["DeliveryCount"] != 1.0 {
		t.Errorf("refusals were counted: %v", got.properties(t))
	}
}

// escapePath makes any text a path that a request can have.
func escapePath(text string) string {
	u := url.URL{Path: text}
	return strings.TrimLeft(u.EscapedPath(), "/.")
}

func FuzzREST(f *testing.F) {
	r := start(f)
	r.queue(entity.Queue{Name: "q", MaxMessageCount: 1000})
	f.Add(`{"MessageId":"m","TimeToLive":1e300}`, `"x"`, "application/json", "body")
	f.Add(`{"TimeToLiveTimeSpan":"99999.23:59:59.9999999"}`, "5", "application/vnd.microsoft.servicebus.json", `[{"Body":"x","UserProperties":{"a":1}}]`)
	f.Fuzz(func(t *testing.T, properties, header, kind, body string) {
		r := *r
		r.t = t
		got := r.do("POST", "/q/messages", body, "BrokerProperties", properties, "Mine", header, "Content-Type", kind)
		if got.status >= 500 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		for got.status == 201 {
			if out := r.do("DELETE", "/q/messages/head?timeout=0", ""); out.status == 204 {
				break
			} else if out.status != 200 {
				t.Fatalf("receive: %d %s", out.status, out.body)
			}
		}
		if c := r.counts("q"); c.Scheduled > 500 {
			_, _ = r.b.Purge(t.Context(), "q")
		}
	})
}

func FuzzJSON(f *testing.F) {
	r := start(f)
	r.queue(entity.Queue{Name: "q", MaxMessageCount: 1000})
	r.topic("t", entity.Subscription{Name: "s"})
	f.Add(`{"name":"a","lockDuration":"1m","authorizationRules":[{"keyName":"k","rights":["Send"],"primaryKey":"p"}]}`)
	f.Add(`{"body":{"a":[1]},"properties":{"n":{"type":"int","value":"5"}},"timeToLive":"forever","scheduledEnqueueTime":"2030-01-01T00:00:00Z"}`)
	f.Add(`[{"body":"x","bodyType":"base64"}]`)
	f.Add(`{"filter":{"sql":"a = @b","parameters":{"b":1.5}},"action":{"sql":"SET a = 1"}}`)
	f.Add(`{"to":"q","filter":"a LIKE 'x%'","max":1}`)
	paths := []string{"POST /queues/q/messages", "PUT /queues/q", "PATCH /queues/q", "POST /topics/t/try", "PATCH /topics/t/subscriptions/s",
		"PUT /topics/t/subscriptions/s/rules/r", "POST /queues/q/deadletters/redrive", "PUT /queues/q/paused", "POST /topics"}
	f.Fuzz(func(t *testing.T, body string) {
		r := *r
		r.t = t
		for _, p := range paths {
			method, path, _ := strings.Cut(p, " ")
			if got := r.do(method, apiRoot+path, body); got.status >= 500 || !wellFormed(got.body) {
				t.Fatalf("%s %q: %d %s", p, body, got.status, got.body)
			}
		}
		r.do("GET", apiRoot+"/queues/q/messages", "")
		_, _ = r.b.Purge(t.Context(), "q")
		for _, topic := range r.b.Topics() {
			if topic.Name != "t" {
				_ = r.b.DeleteTopic(t.Context(), topic.Name)
			}
		}
	})
}
