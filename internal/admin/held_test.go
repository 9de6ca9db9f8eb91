// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
)

// Who sends or reads slowly holds no definition that was replaced meanwhile, and is charged to
// nobody any more: it gets the one that there is when it is needed.
func TestSlowClientsHoldNoDefinitions(t *testing.T) {
	const feed = "?api-version=2021-05"
	for _, c := range []struct{ method, path, body string }{
		{"GET", apiRoot + "/queues", ""},
		{"GET", apiRoot + "/topics", ""},
		{"GET", apiRoot + "/hubs", ""},
		{"GET", apiRoot + "/hubs/h/groups", ""},
		{"GET", apiRoot + "/topics/t/subscriptions", ""},
		{"GET", apiRoot + "/topics/t/subscriptions/z/rules", ""},
		{"POST", apiRoot + "/topics/t/try", `{}`},
		{"GET", "/$Resources/Queues" + feed, ""},
		{"GET", "/$Resources/Topics" + feed, ""},
		{"GET", "/$Resources/EventHubs" + feed, ""},
		{"GET", "/h/ConsumerGroups" + feed, ""},
		{"GET", "/t/Subscriptions" + feed, ""},
		{"GET", "/t/Subscriptions/z/Rules" + feed, ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := start(t)
			r.want(201, "POST", apiRoot+"/topics", `{"name":"t"}`)
			r.want(201, "POST", apiRoot+"/hubs", `{"name":"h","partitionCount":1}`)
			long := strings.Repeat("x", 1000) // a piece of a feed is written before the last of them
			for i := range 40 {
				name := fmt.Sprint("a", i)
				r.want(201, "POST", apiRoot+"/queues", fmt.Sprintf(`{"name":"q%s","userMetadata":%q}`, name, long))
				r.want(201, "POST", apiRoot+"/topics", fmt.Sprintf(`{"name":"t%s","userMetadata":%q}`, name, long))
				r.want(201, "POST", apiRoot+"/hubs/h/groups", fmt.Sprintf(`{"name":%q,"userMetadata":%q}`, name, long))
				r.want(201, "POST", apiRoot+"/topics/t/subscriptions", fmt.Sprintf(`{"name":%q,"userMetadata":%q}`, name, long))
			}
			for i := range 4 {
				r.want(201, "POST", apiRoot+"/hubs", fmt.Sprintf(`{"name":"ha%d","partitionCount":1000,"userMetadata":%q}`, i, long))
			}
			change := func(version string) {
				for path, body := range map[string]string{
					"/queues/z": `{"userMetadata":%q}`, "/topics/zt": `{"userMetadata":%q}`, "/hubs/zh": `{"partitionCount":1,"userMetadata":%q}`,
					"/hubs/h/groups/z": `{"userMetadata":%q}`, "/topics/t/subscriptions/z": `{"userMetadata":%q}`,
				} {
					if got := r.do("PUT", apiRoot+path, fmt.Sprintf(body, version)); got.status/100 != 2 {
						t.Fatalf("%s: %d %s", path, got.status, got.body)
					}
				}
				for i := range 40 { // the last of them is looked for
					rule := fmt.Sprintf("%s/topics/t/subscriptions/z/rules/r%d", apiRoot, i)
					if got := r.do("PUT", rule, fmt.Sprintf(`{"filter":{"sql":"%s = 1 OR a = '%s'"}}`, version, long[:900])); got.status/100 != 2 {
						t.Fatalf("%s: %d %s", rule, got.status, got.body)
					}
				}
			}
			change("before")
			req := httptest.NewRequestWithContext(t.Context(), c.method, "http://localhost"+c.path, strings.NewReader(c.body))
			req.SetBasicAuth("root", "root key")
			w := &slowReader{httptest.NewRecorder(), func() { change("after") }}
			r.handler.ServeHTTP(w, req)
			if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, "after") {
				t.Errorf("%d, and what was held is shown: %.200s...", w.Code, got)
			}
		})
	}
}

// A patch that comes slowly is applied to what there is when it has come.
func TestSlowPatchesHoldNoDefinitions(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic("t", entity.Subscription{Name: "s"})
	r.want(201, "POST", apiRoot+"/hubs", `{"name":"h"}`)
	for _, path := range []string{"/queues/q", "/topics/t", "/topics/t/subscriptions/s", "/hubs/h"} {
		path = apiRoot + path
		req := httptest.NewRequestWithContext(t.Context(), "PATCH", "http://localhost"+path,
			&slowBody{strings.NewReader(`{"status":"Disabled"}`), func() { r.want(200, "PATCH", path, `{"userMetadata":"after"}`) }})
		req.SetBasicAuth("root", "root key")
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, req)
		if got := r.want(200, "GET", path, "").body; w.Code != 200 || !strings.Contains(got, "Disabled") || !strings.Contains(got, "after") {
			t.Errorf("%s: %d, then %s", path, w.Code, got)
		}
	}
}

// A condition is charged what it takes when it is compiled, for as long as the request takes.
func TestConditionsOfRequestsAreCharged(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	sql := "a IN (" + strings.Repeat("+-+-1,", 160) + "1)"
	x, err := filter.Parse(sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	cost := filter.Cost(x)
	none, much := r.charging(cost-1), r.charging(1<<30)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/queues/q/messages?filter=" + url.QueryEscape(sql), ""},
		{"DELETE", "/queues/q/messages?filter=" + url.QueryEscape(sql), ""},
		{"POST", "/queues/q/deadletters/redrive", fmt.Sprintf(`{"filter":%q}`, sql)},
	} {
		if got, charged := none(c.method, apiRoot+c.path, c.body); got != http.StatusTooManyRequests {
			t.Errorf("%s %s without memory: %d after %d bytes, want 429", c.method, c.path, got, charged)
		}
		if got, charged := much(c.method, apiRoot+c.path, c.body); got != http.StatusOK || charged < cost {
			t.Errorf("%s %s: %d, charged %d bytes, want %d", c.method, c.path, got, charged, cost)
		}
	}
}
