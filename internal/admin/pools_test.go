// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// announce has a process of a pool report itself, and returns its orders.
func (r *rig) announce(name, source string) broker.PoolOrders {
	r.t.Helper()
	a, err := r.b.AnnouncePool(r.t.Context(), broker.PoolReport{
		Name: name, Instance: "1", Host: "h", Process: 7, Sources: []string{source},
		Slots: 4, Busy: 3, Suspended: 2, Retrying: 1,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return a.Orders
}

func TestPoolsAreListedAndOrdered(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	var page list[broker.Pool]
	r.want(200, "GET", apiRoot+"/pools", "").into(t, &page)
	if page.Items == nil || page.Total != 0 {
		t.Errorf("no pools: %+v", page)
	}
	r.announce("low", "q")
	r.announce("high", "q")
	r.want(200, "GET", apiRoot+"/pools?prefix=LO", "").into(t, &page)
	if page.Total != 1 || page.Items[0].Name != "low" || page.Items[0].Busy != 3 || page.Items[0].Instances[0].Process != 7 {
		t.Errorf("listed: %+v", page)
	}
	r.want(200, "POST", apiRoot+"/pools/low/pause", "").into(t, &page)
	if page.Total != 1 || !page.Items[0].Paused {
		t.Errorf("paused: %+v", page)
	}
	r.want(200, "POST", apiRoot+"/pools/low/resize", `{"slots":9}`)
	if o := r.announce("low", "q"); !o.Paused || o.Slots != 9 {
		t.Errorf("orders %+v, want a pause and 9 slots", o)
	}
	if o := r.announce("high", "q"); o.Paused || o.Slots != 0 {
		t.Errorf("orders of another pool: %+v", o)
	}
	r.want(200, "POST", apiRoot+"/pools/low/resume", "")
	r.want(200, "POST", apiRoot+"/pools/low/resize?source=Q", `{"slots":0}`)
	if o := r.announce("low", "q"); o.Paused || o.Slots != 0 {
		t.Errorf("orders %+v, want none", o)
	}
	for _, tt := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/pools/none/pause", "", 404, "pool_not_found"},
		{"/pools/low/pause?source=elsewhere", "", 404, "pool_not_found"},
		{"/pools/low/resize", "", 400, "bad_request"},
		{"/pools/low/resize", "{}", 400, "bad_request"},
		{"/pools/low/resize", `{"slots":-1}`, 400, "invalid"},
		{"/pools/low/resize", `{"slots":10001}`, 400, "invalid"},
		{"/pools/low/resize", `{"slots":"two"}`, 400, "bad_request"},
		{"/pools/low/stop", "", 404, "not_found"},
	} {
		got := r.do("POST", apiRoot+tt.path, tt.body)
		if got.status != tt.status || !strings.Contains(got.body, `"`+tt.code+`"`) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.path, tt.body, got.status, got.body, tt.status, tt.code)
		}
	}
}

// Who manages a queue gives orders to the pools at it, and to no others.
func TestOrdersToPoolsAtOneQueue(t *testing.T) {
	r := start(t)
	for _, name := range []string{"a", "b"} {
		r.queue(keyed(name))
		r.announce("low", name)
	}
	own := access.Rule{Name: "own", PrimaryKey: "key of a"}
	for path, status := range map[string]int{
		"/pools/low/pause": 403, "/pools/low/pause?source=b": 403, "/pools/low/pause?source=a%2Fb": 403, "/pools/low/pause?source=": 403,
		"/pools/low/pause?source=A": 200,
	} {
		if got := r.with(own, "a", time.Hour, "POST", apiRoot+path, ""); got.status != status {
			t.Errorf("%s: %d %s, want %d", path, got.status, got.body, status)
		}
	}
	if !r.announce("low", "a").Paused || r.announce("low", "b").Paused {
		t.Error("the wrong pool is paused")
	}
}

// A name may be anything that can be printed; each can be paused.
func TestPoolsWithOddNames(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for _, name := range []string{"orders/eu", "a/../b", "Größe 1", "%2F", "a?b#c", `"{}`, "...", "pause", "日本", "a//b", "a/."} {
		r.announce(name, "q")
		r.want(200, "POST", apiRoot+"/pools/"+url.PathEscape(name)+"/pause", "")
		if !r.announce(name, "q").Paused {
			t.Errorf("%q was not paused", name)
		}
	}
	text := r.want(200, "GET", "/metrics", "").body
	for _, line := range []string{
		`triagemq_pool_paused{pool="a/../b",source="q"} 1`, `triagemq_pool_slots{pool="\"{}",source="q"} 4`,
		`triagemq_pool_busy{pool="pause",source="q"} 3`, `triagemq_pool_suspended{pool="a//b",source="q"} 2`,
		`triagemq_pool_retrying{pool="a//b",source="q"} 1`, `triagemq_pool_processes{pool="a//b",source="q"} 1`,
		`triagemq_pool_completed_total{pool="a//b",source="q"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in the metrics", line)
		}
	}
}
