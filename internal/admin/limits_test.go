// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// nulls is a list of n nulls, which take a byte each.
func nulls(n int) codec.Value {
	return codec.List(make([]codec.Value, n)...) // the zero Value is null
}

// store sends messages without the checks of the API.
func (r *rig) store(addr string, batch ...*message.Message) {
	r.t.Helper()
	s, err := r.b.OpenSender(addr, broker.SenderOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	s.Send(batch, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatal(err)
	}
}

// allocated returns how many bytes were allocated while f ran.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Number 4: the JSON of a message is bounded, whatever a few bytes of it
// contain.
func TestMessageWithManyEmptyElementsIsShownInPart(t *testing.T) {
	const most = 32 << 20 // it was 861 MB
	for name, d := range map[string]message.Draft{
		"property": {Application: []message.Pair{{Name: "small", Value: codec.Int(1)}, {Name: "large", Value: nulls(30_000)}, {Name: "last", Value: codec.Int(2)}}},
		"body":     {Value: new(nulls(240_000))},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "q"})
			r.store("q", d.Message())
			for _, path := range []string{"/queues/q/messages", "/queues/q/messages/1"} {
				var got answered
				n := allocated(func() { got = r.want(200, "GET", apiRoot+path, "") })
				if n > most {
					t.Errorf("%s allocated %d MB, want %d at most", path, n>>20, most>>20)
				}
				if len(got.body) > limits.MessageJSON+64<<10 {
					t.Errorf("%s: an answer of %d bytes, want about %d at most", path, len(got.body), limits.MessageJSON)
				}
				if name == "body" && !strings.Contains(got.body, `runcated":true`) {
					t.Errorf("%s: the answer does not say that something is left out: %.300s", path, got.body)
				}
				if name == "property" && (!strings.Contains(got.body, `"small":1`) || !strings.Contains(got.body, `"last":2`)) {
					t.Errorf("%s: properties that fit are left out: %.300s", path, got.body)
				}
			}
		})
	}
}

// Number 4: nor does receiving one by HTTP build more than that.
func TestMessageWithManyEmptyElementsIsReceived(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	d := message.Draft{Value: new(nulls(220_000)), Application: []message.Pair{{Name: "large", Value: nulls(30_000)}, {Name: "small", Value: codec.Int(1)}}}
	m := d.Message()
	r.store("q", m)
	var got answered
	n := allocated(func() { got = r.want(200, "DELETE", "/q/messages/head?timeout=1", "") })
	if n > 32<<20 {
		t.Errorf("it allocated %d MB, want 32 at most", n>>20)
	}
	if got.body != string(m.Bytes()) {
		t.Errorf("the body has %d bytes, want the %d of the message as it is encoded", len(got.body), m.Size())
	}
	if got.header.Get("small") == "" && len(got.header["small"]) == 0 {
		t.Errorf("the headers are %v, want the property that fits", got.header)
	}
}

// Number 4: an answer with many messages ends before it is too large, and says where
// to go on.
func TestAnswerWithManyMessagesIsBounded(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	const n = 60
	escaped := codec.String(strings.Repeat("\x01", 31<<10)) // six bytes each in JSON
	for range n {
		d := message.Draft{Application: []message.Pair{{Name: "a", Value: escaped}, {Name: "b", Value: escaped}}}
		r.store("q", d.Message())
	}
	seen := 0
	for next := 0; ; {
		got := r.want(200, "GET", fmt.Sprintf("%s/queues/q/messages?max=1000&from=%d", apiRoot, next), "")
		if most := limits.PeekJSON + 2*limits.MessageJSON; len(got.body) > most {
			t.Errorf("an answer of %d bytes, want %d at most", len(got.body), most)
		}
		var l Messages
		got.into(t, &l)
		seen += len(l.Messages)
		if next = int(l.Next); next == 0 {
			break
		}
	}
	if seen != n {
		t.Errorf("all answers have %d messages, want %d", seen, n)
	}
}

// A sender can name a time that JSON has no text for. Its message is shown with the nearest that
// has one, and those behind it are shown as well.
func TestTimesBeyondJSONAreShown(t *testing.T) {
	for name, at := range map[string]struct {
		ms   int64
		want string
	}{
		"after the year 9999": {1 << 52, "9999-12-31T23:59:59Z"},
		"before the year 0":   {math.MinInt64, "0000-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "q"})
			ms := codec.Raw(binary.BigEndian.AppendUint64([]byte{0x83}, uint64(at.ms)))
			odd := message.Draft{Annotations: []message.Pair{{Name: message.AnnotationScheduledEnqueueTime, Value: ms}},
				Application: []message.Pair{{Name: "at", Value: ms}}}
			last := message.Draft{Body: []byte("last")}
			r.store("q", odd.Message())
			r.store("q", last.Message())
			got := r.want(200, "GET", apiRoot+"/queues/q/messages", "")
			var l Messages
			got.into(t, &l)
			if n := len(l.Messages); n != 2 || l.Messages[n-1].Body != "last" {
				t.Errorf("the list is %s, want both messages", got.body)
			}
			for _, s := range []string{got.body, r.want(200, "GET", apiRoot+"/queues/q/messages/1", "").body} {
				if !strings.Contains(s, `"scheduledEnqueueTime":"`+at.want) {
					t.Errorf("it is shown as %s, want %s", s, at.want)
				}
			}
			r.want(200, "GET", apiRoot+"/queues/q/messages/1/explain", "")
		})
	}
}

// Every way in has the same limits over HTTP, and the answer says which.
func TestLimitsOverHTTP(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	long := strings.Repeat("x", 129)
	sql := "x = '" + strings.Repeat("y", 1020) + "'"
	for _, tt := range []struct{ method, path, body string }{
		{"POST", apiRoot + "/queues/q/messages", `{"messageId":"` + long + `"}`},
		{"POST", apiRoot + "/queues/q/messages", `{"sessionId":"` + long + `"}`},
		{"POST", apiRoot + "/queues/q/messages", `{"partitionKey":"` + long + `"}`},
		{"POST", apiRoot + "/queues/q/messages", `{"properties":{"p":"` + strings.Repeat("x", 33<<10) + `"}}`},
		{"POST", apiRoot + "/queues/q/messages", "[" + strings.Repeat(`{},`, limits.SentByHTTP) + "{}]"},
		{"GET", apiRoot + "/queues/q/messages?filter=" + url.QueryEscape(sql), ""},
		{"DELETE", apiRoot + "/queues/q/messages?filter=" + url.QueryEscape(sql), ""},
		{"POST", apiRoot + "/queues/q/deadletters/redrive", `{"filter":"` + sql + `"}`},
		{"PUT", apiRoot + "/policies/q", `{"fairKey":"` + sql + `"}`},
		{"PUT", apiRoot + "/topics/t/subscriptions/s/rules/r", `{"filter":{"sql":"` + sql + `"}}`},
		{"PUT", apiRoot + "/topics/t/subscriptions/s/rules/r", `{"filter":{"correlation":{"label":"` + strings.Repeat("x", 1025) + `"}}}`},
		{"PUT", apiRoot + "/queues/new", `{"userMetadata":"` + strings.Repeat("x", 1025) + `"}`},
	} {
		if got := r.do(tt.method, tt.path, tt.body); got.status != http.StatusBadRequest || !strings.Contains(got.body, "at most") && !strings.Contains(got.body, "1 to") {
			t.Errorf("%s %.80s %.80s: %d %s, want 400 and the limit", tt.method, tt.path, tt.body, got.status, got.body)
		}
	}
	got := r.do("POST", "/q/messages", "body", "BrokerProperties", `{"MessageId":"`+long+`"}`)
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "at most 128") {
		t.Errorf("a message id of 129 by the simple interface: %d %s, want 400", got.status, got.body)
	}
	if c := r.counts("q"); c.Total() != 0 {
		t.Errorf("q has %+v after all the rejected requests, want nothing", c)
	}
}

// leaving is the context of a client that disconnects at the twentieth check of
// the context.
type leaving struct {
	context.Context
	asked int
}

func (l *leaving) Err() error {
	if l.asked++; l.asked >= 20 {
		return context.Canceled
	}
	return nil
}

// Medium: the filter of a request ends with its client: between two messages, the
// evaluation of one being bounded by steps.
func TestFilterEndsWithTheClient(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	var batch []*message.Message
	for range 200 {
		d := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String("x")}}}
		batch = append(batch, d.Message())
	}
	r.store("q", batch...)
	for _, tt := range []struct{ method, path string }{
		{"GET", "/queues/q/messages?filter=p+LIKE+'y'"},
		{"DELETE", "/queues/q/messages?filter=p+LIKE+'y'"},
	} {
		ctx := &leaving{Context: t.Context()}
		req := httptest.NewRequestWithContext(ctx, tt.method, "http://localhost"+apiRoot+tt.path, nil)
		req.SetBasicAuth("root", "root key")
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		if w.Code != http.StatusServiceUnavailable || ctx.asked > 25 {
			t.Errorf("%s %s: %d %s after %d times, want %d after 20", tt.method, tt.path, w.Code, w.Body, ctx.asked, http.StatusServiceUnavailable)
		}
	}
}

// A large body is shown whole, piece by piece.
func TestLargeBodyIsShownWhole(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", MaxMessageSizeInKilobytes: 10 << 10})
	for i, body := range []string{
		strings.Repeat(`"`, 3*bodyPiece+1),
		strings.Repeat("ü\\", bodyPiece),
		"a" + strings.Repeat("€", bodyPiece) + "\x00",
		strings.Repeat("\xff\x00", bodyPiece),
		strings.Repeat("x", bodyPiece),
		strings.Repeat("x", bodyPiece+1),
	} {
		d := message.Draft{Body: []byte(body), MessageID: codec.String("id")}
		r.store("q", d.Message())
		var m Message
		r.want(200, "GET", fmt.Sprintf("%s/queues/q/messages/%d", apiRoot, i+1), "").into(t, &m)
		shown, _ := m.Body.(string)
		if m.BodyType == BodyBase64 {
			b, err := base64.StdEncoding.DecodeString(shown)
			if err != nil {
				t.Error(err)
			}
			shown = string(b)
		}
		if shown != body || m.MessageID != "id" || m.Truncated {
			t.Errorf("body %d: %d bytes are shown of %d, truncated %t, id %q", i, len(shown), len(body), m.Truncated, m.MessageID)
		}
	}
}
