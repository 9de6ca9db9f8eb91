// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

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
