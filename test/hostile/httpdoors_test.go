// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// webScenes is the attacks by HTTP requests: bodies that grow when they are decoded, lists, purges.
var webScenes = []attack{
	{"24.02_bodies_of_many_elements", bodiesOfManyElements},
	{"24.02_elements_with_many_attributes", elementsWithManyAttributes},
	{"24.04_many_purges_with_a_filter", manyPurgesWithAFilter},
	{"24.05_long_lists", longLists},
	{"24.10_many_connections_of_a_key", manyConnectionsOfAKey},
}

const typeBatch = "application/vnd.microsoft.servicebus.json"

// repeated is a text of some size that has one part many times.
func repeated(size int, before, each, after string) string {
	n := (size - len(before) - len(after)) / (len(each) + 1)
	return before + strings.TrimSuffix(strings.Repeat(each+",", n), ",") + after
}

// bodiesOfManyElements sends JSON of a few bytes for each element to everything that reads
// JSON, to some of it with a key that may only send.
func bodiesOfManyElements(s *scene) {
	mib := scale(2, 4) << 20
	s.define(http.MethodPut, "/queues/defined", `{}`)
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/defined", nil) })
	const definition = 1<<20 - 1024
	for _, c := range []struct {
		key                access.Rule
		method, path, body string
	}{
		{sendKey, http.MethodPost, "/site/messages", repeated(mib, "[", "{}", "]")},
		{sendKey, http.MethodPost, "/site/messages", repeated(mib, "[", "null", "]")},
		{sendKey, http.MethodPost, "/site/messages", repeated(mib, `[{"UserProperties":{`, `"":1`, "}}]")},
		{sendKey, http.MethodPost, "/site/messages", repeated(mib, `[{"\u0055serProperties":{`, `"":{}`, "}}]")},
		{sendKey, http.MethodPost, "/site/messages", repeated(mib, "[", repeated(40<<10, `{"UserProperties":{`, `"":1`, "}}"), "]")},
		{sendKey, http.MethodPost, "/api/v1/queues/site/messages", repeated(definition, "[", "{}", "]")},
		{sendKey, http.MethodPost, "/api/v1/queues/site/messages", repeated(definition, `[{"properties":{`, `"":1`, "}}]")},
		{root, http.MethodPut, "/api/v1/queues/defined", repeated(definition, `{"authorizationRules":[`, "{}", "]}")},
		{root, http.MethodPatch, "/api/v1/queues/defined", repeated(definition, `{`, `"":0`, "}")},
		{root, http.MethodPatch, "/api/v1/queues/defined", repeated(definition, `{"authorizationRules":[`, "null", "]}")},
		{root, http.MethodPut, "/api/v1/topics/rules/subscriptions/s", repeated(definition, `{"rules":[`, "{}", "]}")},
		{root, http.MethodPost, "/api/v1/hubs", repeated(definition, `{"consumerGroups":[`, "{}", "]}")},
		{root, http.MethodPut, "/api/v1/policies/defined", repeated(definition, `{"classes":[`, "{}", "]}")},
		{root, http.MethodPost, "/api/v1/policies/defined/dry-run", repeated(definition, `[`, "[]", "]")},
		{root, http.MethodPost, "/api/v1/policies/defined/dry-run", strings.Repeat("[", definition)},
		{root, http.MethodPost, "/api/v1/topics/rules/try", repeated(definition, `{"properties":{`, `"":null`, "}}")},
	} {
		s.refusedTogether(c.key, c.method, c.path, c.body, "Content-Type", typeBatch)
	}
}

// elementsWithManyAttributes sends XML that is nothing but attributes, or namespaces, or
// elements.
func elementsWithManyAttributes(s *scene) {
	const size = 1<<20 - 1024
	for _, body := range []string{
		"<entry " + strings.Repeat(`a="" `, size/5) + "/>",
		"<entry " + strings.Repeat(`xmlns:a="" `, size/11) + "/>",
		"<entry>" + strings.Repeat("<a/>", size/4) + "</entry>",
		"<entry>" + strings.Repeat(`<a b="" c="" d="" e="" f="" g=""/>`, size/34) + "</entry>",
	} {
		s.refusedTogether(root, http.MethodPut, "/made-of-xml?api-version=2021-05", body)
	}
}

// refusedTogether makes the same request many times at once. Each is refused, and not because
// the broker has a fault.
func (s *scene) refusedTogether(key access.Rule, method, path, body string, header ...string) {
	s.Helper()
	n := scale(8, 32)
	answers := make([]string, n)
	together(n, n, func(i int) {
		resp, text, err := s.call(s.ctx, key, method, path, strings.NewReader(body), header...)
		if err != nil { // its body is not read to the end if there is no memory for it
			answers[i] = err.Error()
			return
		}
		answers[i] = fmt.Sprintf("%s %.160s", resp.Status, text)
		if resp.StatusCode/100 != 4 && resp.StatusCode != http.StatusServiceUnavailable {
			s.Errorf("%s %s, %.40s: %s", method, path, body, answers[i])
		}
	})
	s.Logf("%s %s, %.40s: %s", method, path, body, strings.TrimSpace(answers[0]))
}

// manyPurgesWithAFilter has many requests look at all bodies of a queue, and as many do so for
// other reasons. Nothing matches, so that each looks at everything.
func manyPurgesWithAFilter(s *scene) {
	s.define(http.MethodPut, "/queues/purged", `{}`)
	s.Cleanup(func() { _, _, _ = s.call(s.ctx, root, http.MethodDelete, "/api/v1/queues/purged", nil) })
	s.fill("purged", scale(300, 1200), func(int) message.Draft { return message.Draft{Body: []byte(longText(250 << 10))} })
	const filter = "?filter=sys.Label%20%3D%20%27no%27"
	for _, c := range []struct {
		key                access.Rule
		method, path, body string
	}{
		{listenKey, http.MethodDelete, "/api/v1/queues/purged/messages" + filter, ""},
		{listenKey, http.MethodGet, "/api/v1/queues/purged/messages" + filter, ""},
		{root, http.MethodPost, "/api/v1/policies/purged/dry-run", `{"classes":[{"name":"none","when":"sys.Label = 'no'","level":1}]}`},
	} {
		n := scale(60, 200)
		var statuses sync.Map
		together(n, n, func(i int) {
			resp, text, err := s.call(s.ctx, c.key, c.method, c.path, strings.NewReader(c.body))
			if err != nil {
				statuses.Store(err.Error(), i)
				return
			}
			statuses.Store(resp.Status, i)
			if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
				s.Errorf("%s %s: %s %.200s", c.method, c.path, resp.Status, text)
			}
		})
		statuses.Range(func(status, _ any) bool { s.Logf("%s %s: %v", c.method, c.path, status); return true })
	}
}

// longLists makes what an operator lists: links with long names, processes of pools, queues, rules.
// Then all lists are asked for many times at once, by who may.
func longLists(s *scene) {
	s.manyLinks(scale(300, 1400))
	queues := scale(300, 5000)
	s.Cleanup(func() {
		together(queues, 8, func(i int) {
			_, _, _ = s.call(s.ctx, root, http.MethodDelete, fmt.Sprintf("/api/v1/queues/listed%d", i), nil)
		})
	})
	long := fmt.Sprintf(`{"userMetadata": %q}`, strings.Repeat("<", 1024))
	var full atomic.Int64 // the memory for definitions is used up before there are so many
	together(queues, 8, func(i int) {
		resp, text, err := s.call(s.ctx, root, http.MethodPut, fmt.Sprintf("/api/v1/queues/listed%d", i), strings.NewReader(long))
		switch {
		case err == nil && resp.StatusCode == http.StatusCreated:
		case err == nil && resp.StatusCode == http.StatusForbidden && isLong() && strings.Contains(text, "no memory for the definition"):
			full.Add(1)
		default:
			s.Errorf("queue %d: %v %.200s", i, err, text)
		}
	})
	s.Logf("%d queues were created, %d were refused", int64(queues)-full.Load(), full.Load())
	s.manyProcesses(scale(300, 10_000)) // they are listed for 3 s
	for _, path := range []string{
		"/api/v1/pools?top=1000", "/api/v1/connections?top=1000", "/api/v1/queues?top=1000", "/api/v1/objectives?top=1000",
		"/api/v1/topics/fan/subscriptions?top=1000", "/$Resources/Queues?api-version=2021-05&$top=1000", "/metrics",
	} {
		n := scale(20, 30)
		var good, busy atomic.Int64
		together(n, n, func(int) {
			resp, text, err := s.call(s.ctx, root, http.MethodGet, path, nil)
			switch {
			case err != nil:
				busy.Add(1) // an answer that ends early
			case resp.StatusCode == http.StatusOK:
				good.Add(1)
			case resp.StatusCode == http.StatusTooManyRequests:
				busy.Add(1)
			default:
				s.Errorf("%s: %s %.200s", path, resp.Status, text)
			}
		})
		s.Logf("%s: %d answers, %d refusals", path, good.Load(), busy.Load())
		if good.Load() == 0 {
			s.Errorf("%s was never answered", path)
		}
	}
}

// manyLinks attaches links whose names and addresses grow in JSON.
func (s *scene) manyLinks(n int) {
	s.Helper()
	var p *peer
	const links = 1000 // of one session
	for i := range n {
		if i%links == 0 {
			p = s.peer(listenKey)
		}
		h := uint32(i % links)
		a := receiveFrom(h, "noise")
		a.Name = fmt.Sprintf("%s%04d", strings.Repeat("<", 500), h)
		if _, err := p.within(patience).attach(a); err != nil {
			s.Fatalf("link %d: %v", h, err)
		}
	}
}

// manyProcesses announces processes of pools, as long as they are accepted.
func (s *scene) manyProcesses(n int) {
	s.Helper()
	long := strings.Repeat("<", 250)
	sources := []string{"noise", "first", "second", "answers", "site", "credit", "frames", "relayed", "peeked", "properties"}
	together(len(sources), len(sources), func(k int) {
		d, err := s.peer(listenKey).talk(sources[k]+"/$management", 1000)
		if err != nil {
			s.Error(err)
			return
		}
		for i := range n / len(sources) {
			if _, _, err := d.within(patience).ask(request(names.AnnouncePool, codec.Map(
				codec.String(names.PoolName), codec.String(fmt.Sprint("listed", i%50)), codec.String(names.PoolInstance), codec.String(fmt.Sprint(i)),
				codec.String(names.PoolHost), codec.String(long), codec.String(names.PoolIdle), codec.String(long)))); err != nil {
				s.Logf("process %d of %s: %v", i, sources[k], err)
				return
			}
		}
	})
}

// manyConnectionsOfAKey opens more connections with one key than the broker accepts: half of
// them idle, the other half with a body that does not come. Other keys log in all the same.
func manyConnectionsOfAKey(s *scene) {
	n := scale(2500, 10_000)
	conns := make([]net.Conn, n)
	s.Cleanup(func() {
		for _, nc := range conns {
			if nc != nil {
				nc.Close()
			}
		}
	})
	login := base64.StdEncoding.EncodeToString([]byte(sendKey.Name + ":" + sendKey.PrimaryKey))
	var answers [6]atomic.Int64 // by the first digit of their status; zero without one
	together(n, 50, func(i int) {
		nc, err := s.dialFrom(s.ctx, net.IPv4(127, 0, 3, byte(1+i/250)))
		if err != nil {
			answers[0].Add(1)
			return
		}
		conns[i] = nc
		// Refusals come at once, as do answers to those that send the body.
		body, wait := "x", patience
		if i%2 == 1 {
			body, wait = "", 20*time.Millisecond
		}
		fmt.Fprintf(nc, "POST /site/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic %s\r\nContent-Length: 1\r\n\r\n%s", login, body)
		_ = nc.SetReadDeadline(time.Now().Add(wait))
		var status int
		_, _ = fmt.Fscanf(nc, "HTTP/1.1 %d ", &status)
		answers[status/100].Add(1)
	})
	if _, err := s.get(s.ctx, root, "/api/v1/namespace"); err != nil {
		s.Errorf("the root key, by HTTP: %v", err)
	}
	for _, key := range []access.Rule{root, listenKey} {
		p, err := s.connect(net.IPv4(127, 0, 0, 1))
		if err == nil {
			err = p.within(patience).open("PLAIN", []byte("\x00"+key.Name+"\x00"+key.PrimaryKey))
		}
		if err != nil {
			s.Errorf("the key %s, by AMQP: %v", key.Name, err)
		}
	}
	s.Logf("of %d connections %d were answered, %d refused, %d have no answer", n, answers[2].Load(), answers[5].Load(), answers[0].Load())
}
