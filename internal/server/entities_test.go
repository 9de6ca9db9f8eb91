// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// 10: keys of the namespace that the configuration no longer names are void at once.
func TestKeysFollowTheConfiguration(t *testing.T) {
	changes := make(chan config.Config)
	shop := func(key string) config.Config {
		return config.Config{Security: config.Security{Rules: entity.AuthorizationRules{
			{KeyName: "shop", Rights: []entity.Right{entity.Manage}, PrimaryKey: key},
		}}}
	}
	r := run(t, func(c *Config) { c.Changes, c.Security.Rules = changes, shop("old").Security.Rules })
	status := func(key string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/api/v1/queues", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("shop", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := status("old"); got != http.StatusOK {
		t.Fatalf("before: %d, want 200", got)
	}
	changes <- shop("new")
	changes <- shop("new") // taken when the first is done
	if got := status("old"); got != http.StatusUnauthorized {
		t.Errorf("the old key: %d, want 401", got)
	}
	if got := status("new"); got != http.StatusOK {
		t.Errorf("the new key: %d, want 200", got)
	}
}

func TestChangesAreFollowedWhileRunning(t *testing.T) {
	changes := make(chan config.Config)
	r := run(t, func(c *Config) { c.Changes = changes })
	status := func(path string) int {
		t.Helper()
		resp, err := http.Get("http://" + r.addr + "/api/v1" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := status("/queues/new"); got != http.StatusNotFound {
		t.Fatalf("before: %d, want 404", got)
	}
	next := config.Config{
		Queues: []entity.Queue{{Name: "q", RequiresSession: true}, {Name: "new"}}, // the first cannot be changed
		Topics: []config.Topic{{Topic: entity.Topic{Name: "t"}, Subscriptions: []entity.Subscription{{Name: "s"}}}},
	}
	changes <- next
	changes <- next // taken when the first is done
	for _, path := range []string{"/queues/q", "/queues/new", "/topics/t/subscriptions/s"} {
		if got := status(path); got != http.StatusOK {
			t.Errorf("%s: %d, want 200", path, got)
		}
	}
}
