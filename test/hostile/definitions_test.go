// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// definitionScenes is the attacks by what a key with the right Manage defines.
var definitionScenes = []attack{
	{"24.06_definitions", largeDefinitions},
	{"24.06_dry_runs", largeDryRuns},
	{"24.07_groups_and_the_next_start", nextStart},
	{"m_policies_at_once", policiesAtOnce},
	{"m_long_sql", longSQL},
}

// manage makes a request of the management API with JSON and returns the status.
func (s *scene) manage(method, path, body string) (status int, text string) {
	resp, text, err := s.call(s.ctx, root, method, path, strings.NewReader(body), "Content-Type", "application/json")
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, text
}

// inList is the shortest SQL that takes the most memory when it is compiled.
func inList(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "a%d IN (1", i)
	for n := 10; b.Len() < 1000; n++ {
		fmt.Fprintf(&b, ",%d", n)
	}
	return b.String() + ")"
}

// largeDefinitions creates subscriptions with very many rules. They are in memory as they
// were written and compiled, and come back at each start, so they are refused when the
// memory for definitions is used up. What is deleted makes space again.
func largeDefinitions(s *scene) {
	rules := scale(40, 800)
	if status, text := s.manage(http.MethodPost, "/api/v1/topics", `{"name":"large"}`); status != http.StatusCreated {
		s.Fatalf("create the topic: %d %s", status, text)
	}
	s.Cleanup(func() { s.manage(http.MethodDelete, "/api/v1/topics/large", "") })
	var all []string
	for i := range rules {
		all = append(all, fmt.Sprintf(`{"name":"r%d","filter":{"sql":%q}}`, i, inList(i)))
	}
	create := func(name string) (int, string) {
		return s.manage(http.MethodPost, "/api/v1/topics/large/subscriptions", fmt.Sprintf(`{"name":%q,"rules":[%s]}`, name, strings.Join(all, ",")))
	}
	created, refused := 0, 0
	for i := range scale(60, 250) {
		switch status, text := create(fmt.Sprint("s", i)); {
		case status == http.StatusCreated:
			created++
		case status == http.StatusForbidden && strings.Contains(text, "limits.storedMemory"):
			refused++
		default:
			s.Fatalf("subscription %d: %d %.300s", i, status, text)
		}
	}
	s.Logf("%d subscriptions with %d rules were created, %d were refused", created, rules, refused)
	if created == 0 && !isLong() || refused == 0 {
		s.Error("some are to be created, and some to be refused")
	}
	if created == 0 {
		return
	}
	if status, _ := s.manage(http.MethodDelete, "/api/v1/topics/large/subscriptions/s0", ""); status/100 != 2 {
		s.Errorf("delete a subscription: %d", status)
	}
	if status, text := create("again"); status != http.StatusCreated {
		s.Errorf("after one was deleted: %d %.300s", status, text)
	}
}

// largeDryRuns tries very large policies, many at once. One that is tried takes as much
// memory as one that is stored.
func largeDryRuns(s *scene) {
	var classes []string
	for i := range 200 {
		classes = append(classes, fmt.Sprintf(`{"name":"c%d","level":%d,"when":%q}`, i, i, inList(i)))
	}
	policy := `{"classes":[` + strings.Join(classes, ",") + `]}`
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range scale(5, 50) {
				resp, text, err := s.call(s.ctx, root, http.MethodPost, "/api/v1/policies/noise/dry-run", strings.NewReader(policy), "Content-Type", "application/json")
				if err != nil {
					s.Errorf("dry run: %v", err)
					return
				}
				if c := resp.StatusCode; c != http.StatusOK && c != http.StatusForbidden && c != http.StatusTooManyRequests {
					s.Errorf("dry run: %d %.300s", c, text)
				}
			}
		})
	}
	wg.Wait()
}

// signs is SQL that is one operation for each character.
func signs(size int) string {
	const one = "+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-1,"
	return "a IN (" + strings.Repeat(one, size/len(one)) + "1)"
}

// policiesAtOnce sets very large policies, many at once: they are compiled one at a time, to find
// out that there is no memory for them.
func policiesAtOnce(s *scene) {
	var classes []string
	for i := range 240 {
		classes = append(classes, fmt.Sprintf(`{"name":"c%d","level":%d,"when":%q}`, i, i, signs(960)))
	}
	policy := `{"classes":[` + strings.Join(classes, ",") + `]}`
	s.allRefused(scale(24, 100), http.MethodPut, "/api/v1/policies/noise", policy, http.StatusForbidden)
}

// allRefused makes a request so many times at once, each of which is refused, for its size or for
// lack of memory.
func (s *scene) allRefused(n int, method, path, body string, status int) {
	s.Helper()
	together(n, n, func(int) {
		resp, text, err := s.call(s.ctx, root, method, path, strings.NewReader(body))
		if err != nil {
			s.Error(err)
		} else if c := resp.StatusCode; c != status && c != http.StatusTooManyRequests {
			s.Errorf("%s %s: %d %.300s", method, path, c, text)
		}
	})
}

// longSQL creates rules with SQL that is far too long, many at once. It is not compiled.
func longSQL(s *scene) {
	body := fmt.Sprintf(`{"name":"long","filter":{"sql":%q}}`, signs(64_000))
	s.allRefused(scale(200, 1000), http.MethodPost, "/api/v1/topics/rules/subscriptions/s/rules", body, http.StatusBadRequest)
}

// nextStart fills a hub with consumer groups over the wire. Then the broker starts with a
// configuration that wants one more, and other things that what is stored does not allow. It
// serves what it can, and says what it could not apply.
func nextStart(s *scene) {
	dir, begin := s.TempDir(), time.Now()
	const security = "listeners: ['127.0.0.1:0']\nsecurity: {rules: [{name: root, rights: [Send, Listen, Manage], primaryKey: the-long-key-of-root}]}\n"
	b, err := start(dir, security)
	if err != nil {
		s.Fatal(err)
	}
	post := func(path, body string) {
		s.Helper()
		resp, text, err := b.call(s.ctx, root, http.MethodPost, "/api/v1/"+path, strings.NewReader(body), "Content-Type", "application/json")
		if err != nil || resp.StatusCode != http.StatusCreated {
			s.Fatalf("create %s: %v %.300s", path, err, text)
		}
	}
	var groups []string
	for i := range 999 {
		groups = append(groups, fmt.Sprintf(`{"name":"g%d"}`, i))
	}
	post("hubs", `{"name":"events","partitionCount":1,"consumerGroups":[{"name":"$Default"},`+strings.Join(groups, ",")+`]}`)
	post("queues", `{"name":"taken"}`)
	post("queues", `{"name":"plain"}`)
	if err := b.Stop(); err != nil {
		s.Fatal(err)
	}
	b, err = start(dir, security+"hubs: [{name: events, consumerGroups: [mine]}]\ntopics: [{name: taken, subscriptions: [{name: all}]}]\n"+
		"queues: [{name: plain, requiresSession: true}, {name: new}, {name: more, forwardTo: new}]\n")
	if err != nil {
		s.Fatalf("the broker does not start: %v", err)
	}
	defer b.Stop()
	s.Logf("it started, after %v", time.Since(begin))
	resp, text, err := b.call(s.ctx, root, http.MethodGet, "/readyz", nil)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.HasPrefix(text, "degraded: ") {
		s.Fatalf("/readyz: %v %s", err, text)
	}
	if _, text, err = b.call(s.ctx, root, http.MethodGet, "/api/v1/namespace", nil); err != nil {
		s.Fatal(err)
	}
	for _, part := range []string{"events/mine", "topic taken", "queue plain"} {
		if !strings.Contains(text, part) {
			s.Errorf("%q is not among the warnings: %s", part, text)
		}
	}
	for _, q := range []string{"new", "more", "plain"} {
		if resp, text, err := b.call(s.ctx, root, http.MethodPost, "/api/v1/queues/"+q+"/messages", strings.NewReader(`{"body":"x"}`),
			"Content-Type", "application/json"); err != nil || resp.StatusCode/100 != 2 {
			s.Errorf("send to %s: %v %s", q, err, text)
		}
	}
}
