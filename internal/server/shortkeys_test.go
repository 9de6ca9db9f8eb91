// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Keys that are too short are refused by the API, too, unless the broker is one for
// development. One that an entity has already does not stand in the way of changing
// something else.
func TestShortKeysAreRefusedByTheAPI(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) { cfg = *c })
	body := func(name, key, more string) string {
		return fmt.Sprintf(`{"name":%q,"authorizationRules":[{"keyName":"k","rights":["Send"],"primaryKey":%q}]%s}`, name, key, more)
	}
	if res, text := r.do("POST", "/api/v1/queues", body("old", "short", "")); res.StatusCode != http.StatusCreated {
		t.Fatalf("in development: %s %s", res.Status, text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Security.Dev = false
	r.start(cfg)
	root := []string{"Authorization", basic(*r.up.NewKey)}
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/queues", body("q1", "short", ""), http.StatusBadRequest},
		{"POST", "/topics", body("t1", "short", ""), http.StatusBadRequest},
		{"POST", "/queues", body("q1", "a key that is long", ""), http.StatusCreated},
		{"POST", "/topics", body("t1", "a key that is long", ""), http.StatusCreated},
		{"PUT", "/queues/q1", body("q1", "short", ""), http.StatusBadRequest},
		{"PUT", "/topics/t1", body("t1", "short", ""), http.StatusBadRequest},
		{"PUT", "/queues/old", body("old", "short", `,"lockDuration":"30s"`), http.StatusOK},
		{"PUT", "/queues/old", body("old", "also short", ""), http.StatusBadRequest},
	} {
		res, text := r.do(tt.method, "/api/v1"+tt.path, tt.body, root...)
		if res.StatusCode != tt.status {
			t.Errorf("%s %s %s: %s, want %d\n%s", tt.method, tt.path, tt.body, res.Status, tt.status, text)
		}
		if tt.status == http.StatusBadRequest && !strings.Contains(text, "a key at least 16") {
			t.Errorf("%s %s: it says %s", tt.method, tt.path, text)
		}
	}
}
