// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queue"
)

func numbers(ms []Message) []queue.SeqNo {
	var ns []queue.SeqNo
	for _, m := range ms {
		ns = append(ns, m.SequenceNumber)
	}
	return ns
}

func TestSentMessageIsShownAsItWas(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.want(201, "POST", apiRoot+"/queues/q/messages", `{
		"messageId":"m1","correlationId":"c1","sessionId":"","subject":"s","to":"t","replyTo":"r","replyToSessionId":"rs",
		"contentType":"text/plain","partitionKey":"p","timeToLive":"1h","priority":8,
		"properties":{"tenant":"contoso","n":5,"x":1.5,"b":true,"nothing":null,"i":{"type":"int","value":"7"},"at":{"type":"dateTime","value":"2026-01-02T03:04:05Z"}},
		"body":"grüße"}`)
	var m Message
	r.want(200, "GET", apiRoot+"/queues/q/messages/1", "").into(t, &m)
	if m.MessageID != "m1" || m.CorrelationID != "c1" || m.SessionID == nil || *m.SessionID != "" || m.Subject != "s" || m.To != "t" ||
		m.ReplyTo != "r" || m.ReplyToSessionID != "rs" || m.ContentType != "text/plain" || m.PartitionKey != "p" ||
		m.TimeToLive.String() != "1h" || *m.Priority != 8 || m.Level != 8 || m.State != "ready" || m.Body != "grüße" || m.BodyType != BodyText {
		t.Errorf("shown: %+v", m)
	}
	want := map[string]any{"tenant": "contoso", "n": 5.0, "x": 1.5, "b": true, "nothing": nil, "i": 7.0, "at": "2026-01-02T03:04:05Z"}
	if fmt.Sprint(m.Properties) != fmt.Sprint(want) {
		t.Errorf("properties %v, want %v", m.Properties, want)
	}
	for body, shown := range map[string]string{
		`{"body":{"a":1}}`:                      `{"a":1}`,
		`{"body":"AP8=","bodyType":"base64"}`:   "AP8=",
		`{"body":"\"x\"","bodyType":"text"}`:    `"x"`,
		`{"body":"text","bodyType":"json"}`:     `"text"`,
		`{"body":""}`:                           "",
		`{"body":"at times","timeToLive":"9w"}`: "",
	} {
		got := r.do("POST", apiRoot+"/queues/q/messages", body)
		if strings.Contains(body, "9w") {
			if got.status != 400 {
				t.Errorf("%s: %d, want 400", body, got.status)
			}
			continue
		}
		var l Messages
		r.want(200, "GET", apiRoot+"/queues/q/messages?from=2", "").into(t, &l)
		if n := len(l.Messages); n == 0 || l.Messages[n-1].Body != shown {
			t.Errorf("%s is shown as %+v, want %q", body, l.Messages, shown)
		}
	}
}

func TestPeekByPagesAndFilter(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for i := range 600 { // more than one window
		r.want(201, "POST", apiRoot+"/queues/q/messages", fmt.Sprintf(`{"body":"%d","properties":{"n":%d}}`, i, i))
	}
	var l Messages
	r.want(200, "GET", apiRoot+"/queues/q/messages", "").into(t, &l)
	if len(l.Messages) != 50 || l.Next != 51 {
		t.Errorf("first page: %d messages, next %d, want 50 and 51", len(l.Messages), l.Next)
	}
	seen := 0
	for next := queue.SeqNo(0); ; next = l.Next {
		l = Messages{}
		r.want(200, "GET", fmt.Sprintf("%s/queues/q/messages?max=250&from=%d", apiRoot, next), "").into(t, &l)
		seen += len(l.Messages)
		if l.Next == 0 {
			break
		}
	}
	if seen != 600 {
		t.Errorf("all pages have %d messages, want 600", seen)
	}
	r.want(200, "GET", apiRoot+"/queues/q/messages?filter=n+%25+200+%3D+3", "").into(t, &l)
	if got := fmt.Sprint(numbers(l.Messages)); got != "[4 204 404]" {
		t.Errorf("n %% 200 = 3: %s, want [4 204 404]", got)
	}
	r.want(200, "GET", apiRoot+"/queues/q/messages?filter=sys.SequenceNumber+%3E+598", "").into(t, &l)
	if got := fmt.Sprint(numbers(l.Messages)); got != "[599 600]" {
		t.Errorf("by number: %s", got)
	}
	var gone Removed
	r.want(204, "DELETE", apiRoot+"/queues/q/messages/1", "")
	r.want(200, "DELETE", apiRoot+"/queues/q/messages?max=99", "").into(t, &gone)
	if gone.Removed != 99 {
		t.Errorf("removed %d, want 99", gone.Removed)
	}
	r.want(200, "DELETE", apiRoot+"/queues/q/messages", "").into(t, &gone)
	if gone.Removed != 500 {
		t.Errorf("removed %d, want 500", gone.Removed)
	}
}

func TestLongBodiesAreCutInLists(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	long := strings.Repeat("ü", bodyPreview) // two bytes each
	r.want(201, "POST", apiRoot+"/queues/q/messages", `{"body":"x`+long+`"}`)
	var l Messages
	r.want(200, "GET", apiRoot+"/queues/q/messages", "").into(t, &l)
	text, _ := l.Messages[0].Body.(string)
	if !l.Messages[0].Truncated || l.Messages[0].BodyType != BodyText || len(text) != bodyPreview-1 || !strings.HasPrefix("x"+long, text) {
		t.Errorf("in a list: %d bytes of %s, truncated %v, want whole characters up to %d bytes",
			len(text), l.Messages[0].BodyType, l.Messages[0].Truncated, bodyPreview)
	}
	var m Message
	r.want(200, "GET", apiRoot+"/queues/q/messages/1", "").into(t, &m)
	if m.Truncated || m.Body != "x"+long {
		t.Error("alone it is cut as well")
	}
	r.want(413, "POST", apiRoot+"/queues/q/messages", `{"body":"`+strings.Repeat("x", 300<<10)+`"}`)
	r.want(413, "POST", apiRoot+"/queues/q/messages", `{"body":"`+strings.Repeat("x", 3<<20)+`"}`)
}

func TestDeadLettersAreRedriven(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxDeliveryCount: 1})
	r.queue(entity.Queue{Name: "other"})
	for i := range 4 {
		r.want(201, "POST", "/q/messages", "x", "Kind", []string{"a", "b"}[i%2])
		got := r.want(201, "POST", "/q/messages/head?timeout=5", "")
		r.want(200, "PUT", strings.TrimPrefix(got.header.Get("Location"), "http://localhost"), "") // fails, once too often
	}
	if c := r.counts("q"); c.Dead != 4 {
		t.Fatalf("%+v, want 4 dead", c)
	}
	var l Messages
	r.want(200, "GET", apiRoot+"/queues/q/deadletters", "").into(t, &l)
	if len(l.Messages) != 4 || l.Messages[0].DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letters: %+v", l)
	}
	var moved struct{ Moved, Left, Next, Until int }
	r.want(200, "POST", apiRoot+"/queues/q/deadletters/redrive", `{"to":"other","filter":"kind = 'b'","max":1}`).into(t, &moved)
	if moved.Moved != 1 || moved.Next == 0 || moved.Until != 4 {
		t.Errorf("one redriven elsewhere: %+v, want where to go on and where to stop", moved)
	}
	r.want(200, "POST", apiRoot+"/queues/q/deadletters/redrive", fmt.Sprintf(`{"to":"other","from":%d,"until":3}`, moved.Next)).into(t, &moved)
	if moved.Moved != 1 || r.counts("other").Active != 2 {
		t.Errorf("redriven until 3: %+v", moved)
	}
	r.want(204, "DELETE", fmt.Sprintf("%s/queues/q/deadletters/%d", apiRoot, l.Messages[0].SequenceNumber), "")
	r.want(200, "POST", apiRoot+"/queues/q/deadletters/redrive", "").into(t, &moved)
	if c := r.counts("q"); moved.Moved != 1 || c.Active != 1 || c.Dead != 0 {
		t.Errorf("redriven: %+v, %+v, want the last one back", moved, c)
	}
	r.want(200, "GET", apiRoot+"/queues/q/deadletters?transfer=true", "")
	r.want(200, "DELETE", apiRoot+"/queues/q/deadletters", "")
}

// A peeked message is charged to its client before it is read: many slow
// clients must not have one each without a charge.
func TestShownMessagesAreCharged(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for range 3 {
		r.want(201, "POST", "/q/messages", strings.Repeat("x", 100_000))
	}
	space, asked := int64(0), int64(0)
	h := New(Parts{Broker: r.b, Log: r.api.Log, Callers: r.api.Callers, ChargeMemory: func(_ *http.Request, n int64) bool { asked += n; return asked <= space }})
	get := func(path string) *httptest.ResponseRecorder {
		asked = 0
		req := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
		req.SetBasicAuth("root", "root key")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w
	}
	for _, path := range []string{"/api/v1/queues/q/messages", "/api/v1/queues/q/messages/1"} {
		space = 90_000
		if w := get(path); w.Code != http.StatusTooManyRequests || asked < 100_000 {
			t.Errorf("%s without memory: %d, for %d bytes", path, w.Code, asked)
		}
		space = 250_000
		if w := get(path); w.Code != http.StatusOK || asked > space {
			t.Errorf("%s: %d, for %d bytes", path, w.Code, asked)
		}
	}
}
