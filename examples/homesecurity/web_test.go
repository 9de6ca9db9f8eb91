// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/client/admin"
	"github.com/triagemq/triagemq/triagetest"
)

// serveWeb serves the pages of 1,000 homes.
func serveWeb(t *testing.T, b *triagetest.Broker, s store) *httptest.Server {
	t.Helper()
	ops := newOperations(func(context.Context) (groupState, error) { return groupState{}, errors.New("nobody is asked") })
	w := newWeb(b.Client(), s, ops, 1000, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.live.run(ctx); close(done) }()
	server := httptest.NewServer(w.handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		<-done
	})
	return server
}

// get returns the status and text of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestFindHomes(t *testing.T) {
	server := serveWeb(t, triagetest.Start(t, string(definitions)), dirStore(t.TempDir()))
	for q, want := range map[string]string{
		"42":           `[{"home":42,"address":"3 Maple Court"},{"home":656,"address":"42 Acacia Avenue"}`,
		"3%20elm":      `[{"home":36,"address":"3 Elm Street"},`,
		"1000":         `[]`,
		"-1":           `[]`,
		"":             `[]`,
		"%3Cscript%3E": `[]`,
	} {
		status, text := get(t, server.URL+"/api/homes?q="+q)
		if status != 200 || !strings.HasPrefix(text, want) {
			t.Errorf("%s: %d %s, want %s", q, status, text, want)
		}
	}
	for _, path := range []string{"/api/homes/1000", "/api/homes/-1", "/api/homes/..%2F..%2Fpasswd", "/api/homes/1000/events", "/api/demo"} {
		if status, text := get(t, server.URL+path); status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want 404", path, status, text)
		}
	}
	for _, path := range []string{"/", "/operations"} {
		if status, text := get(t, server.URL+path); status != 200 || !strings.Contains(text, "<html") {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// events reads a stream of server-sent events. Each is its name, a space and its data.
func events(t *testing.T, url string) <-chan string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	out := make(chan string, 100)
	go func() { // ends with the stream
		defer close(out)
		name := ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				name = value
			case "data":
				out <- name + " " + value
			}
		}
	}()
	return out
}

// wait returns the next event that begins with a text.
func wait(t *testing.T, es <-chan string, prefix string) string {
	t.Helper()
	end := time.After(20 * time.Second)
	for {
		select {
		case e, open := <-es:
			if !open {
				t.Fatalf("the stream has ended before %q", prefix)
			}
			if strings.HasPrefix(e, prefix) {
				return e
			}
		case <-end:
			t.Fatalf("there is no %q", prefix)
		}
	}
}

func TestPageGetsTheDocumentAndThenReadings(t *testing.T) {
	b := triagetest.Start(t, string(definitions))
	s := dirStore(t.TempDir())
	if _, err := homesOn(s).handle(t.Context(), eventsOf(t, 0, story...)); err != nil {
		t.Fatal(err)
	}
	server := serveWeb(t, b, s)
	es := events(t, server.URL+"/api/homes/7/events")
	document := wait(t, es, "home ")
	if !strings.Contains(document, `"address":"1 Hazel Grove"`) || !strings.Contains(document, `"value":"clear","since":7000`) || !strings.Contains(document, `"kind":"usual"`) {
		t.Errorf("document %s", document)
	}
	publish(t, b.Client(), func() bool { return len(es) > 0 }, reading{8, "door", "open", 1}, reading{7, "smoke", "smoke", 9000})
	text := wait(t, es, "reading ")
	var r liveReading
	if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "reading ")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Home != 7 || r.Sensor != "smoke" || r.Value != "smoke" || r.Kind != raised {
		t.Errorf("%s", text)
	}
}

// publish publishes readings again and again until something is true: readers that begin
// with the end of a partition may not be there yet.
func publish(t *testing.T, c *client.Client, until func() bool, rs ...reading) {
	t.Helper()
	s, err := c.OpenSender(t.Context(), hubName, nil)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !until(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing happens")
		}
		for _, r := range rs {
			m, err := r.event()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A page that does not keep up is given up, and holds nobody else up.
func TestSlowPage(t *testing.T) {
	l := &live{watchers: map[string]map[*watcher]struct{}{}}
	slow, end := l.watch(7)
	defer end()
	for _, e := range eventsOf(t, 0, slices.Repeat(story, 20)...) {
		l.publish(e)
	}
	select {
	case <-slow.lost:
	default:
		t.Error("it is still served")
	}
	if len(l.watchers) != 0 {
		t.Errorf("%d homes are watched", len(l.watchers))
	}
}

func TestOwnersOverTime(t *testing.T) {
	at := func(owner string, last, handled int64) groupState {
		return groupState{Partitions: []opsPartition{{Partition: 3, Owner: owner, LagEvents: last - handled, last: last, handled: handled}}}
	}
	var s opsStatus
	s = follow(s, at("a", 100, 90), 1000)
	s = follow(s, at("a", 200, 150), 2000)
	if s.In != 20 || s.Out != 12 || s.Lag != 50 { // a fifth of what the first second shows
		t.Errorf("%v in, %v handled, %v behind", s.In, s.Out, s.Lag)
	}
	before := s.Partitions[0].Owners
	s = follow(s, at("", 300, 150), 3000)
	s = follow(s, at("b", 400, 300), 4000)
	want := []span{{"a", 1000, 3000}, {"", 3000, 4000}, {"b", 4000, 4000}}
	if got := s.Partitions[0].Owners; !slices.Equal(got, want) {
		t.Errorf("owners %v, want %v", got, want)
	}
	if !slices.Equal(before, []span{{"a", 1000, 2000}}) {
		t.Errorf("what a page was sent has changed: %v", before)
	}
	s = follow(s, at("b", 500, 500), 400_000)
	if got := s.Partitions[0].Owners; !slices.Equal(got, []span{{"b", 400_000, 400_000}}) {
		t.Errorf("owners %v after a long time", got)
	}
}

func TestInstancesAreShownByName(t *testing.T) {
	var told admin.GroupState
	err := json.Unmarshal([]byte(`{
		"members": [{"id": "x1", "name": "instance-1", "partitions": 2, "connected": true}, {"id": "x2"}],
		"partitions": [
			{"id": "0", "owner": "x1", "epoch": 3, "state": "owned", "handled": 80, "checkpoint": 90, "checkpointAgeSeconds": 0.5, "lagEvents": 10},
			{"id": "1", "owner": "x2", "checkpoint": -2, "lagEvents": 7},
			{"id": "2", "state": "free"}]}`), &told)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stateOf(told)
	if err != nil {
		t.Fatal(err)
	}
	if i := got.Instances; len(i) != 2 || i[0].Name != "instance-1" || i[0].Partitions != 2 || i[1].Name != "x2" {
		t.Errorf("instances %+v", i)
	}
	want := []opsPartition{
		{Partition: 0, Owner: "instance-1", State: "owned", Epoch: 3, LagEvents: 10, CheckpointAge: 0.5, last: 100, handled: 90},
		{Partition: 1, Owner: "x2", LagEvents: 7, CheckpointAge: -1, last: 6, handled: -1},
		{Partition: 2, State: "free", CheckpointAge: -1, last: -1, handled: -1},
	}
	for i, p := range got.Partitions {
		if fmt.Sprint(p) != fmt.Sprint(want[i]) {
			t.Errorf("partition %+v, want %+v", p, want[i])
		}
	}
}
