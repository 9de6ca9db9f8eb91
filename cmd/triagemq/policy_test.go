// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

// file writes a file and returns its name.
func (c terminal) policyFile(text string) string {
	c.t.Helper()
	name := filepath.Join(c.t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return name
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestPolicyCheckTellsLinesAndConsequences(t *testing.T) {
	c := terminal{t: t}
	bad := c.policyFile("discipline: aging\nclasses:\n  - name: a\n    level: 900\n    when: \"x =\"\n")
	o := c.with("", "policy", "check", bad)
	if o.code != cli.ExitUsage {
		t.Errorf("code %d, want %d", o.code, cli.ExitUsage)
	}
	wantParts(t, o.err, ":4:12: classes[0].level: ", ":5:11: classes[0].when: ", "aging.interval: missing")

	good := c.policyFile("discipline: aging\naging: {interval: 1m, maxLevel: 8}\nclasses:\n" +
		"  - {name: high, level: 8, when: \"p = 'h'\"}\n  - {name: low, level: 3, objective: {wait: 10s}}\n")
	out := c.do("policy", "check", good)
	wantParts(t, out, "class low (level 3): later messages go ahead of it only if", ":5:", "shorter than the lock of 1m")

	config := c.policyFile("queues:\n  - name: orders\n    policy: {fairKey: tenant}\n")
	wantParts(t, c.do("policy", "check", config), "orders:\n", "the values of tenant take turns")
}

func TestPolicyIsTriedSetAndShown(t *testing.T) {
	c := startCLI(t, "queues:\n  - {name: orders}\n  - {name: second}\n")
	c.do("send", "orders", "-b", "a", "--property", "plan=paid")
	c.do("send", "orders", "-b", "b")
	file := c.policyFile("classes:\n  - {name: paid, level: 8, when: \"plan = 'paid'\", objective: {wait: 10m}}\n")
	wantParts(t, c.do("policy", "dry-run", "orders", file), "Of 2 messages in orders, 1 would change:", "no class, level 4  paid, level 8")
	wantParts(t, c.do("policy", "set", "orders", file), "Policy of orders, revision 1:")
	wantParts(t, c.do("policy", "get", "orders"), `"name": "paid"`, "class paid (level 8): served before all other classes.")
	wantParts(t, c.do("objectives", "orders"), "paid   95% within 10m0s  met")
	wantParts(t, c.do("stats", "orders"), "orders  paid", "send", "operations for each message")
	wantParts(t, c.do("explain", "orders", "2"), "Message 2 of orders is waiting", "Ahead of it (strict): 1 of paid (level 8).")

	// A range, and several queues at once.
	wantParts(t, c.do("receive", "orders", "--max-priority", "4", "--body-only"), "b\n")
	c.do("send", "second", "-b", "c")
	c.want("a\nc\n", "receive", "--from", "orders,second", "--count", "2", "--body-only")

	c.do("policy", "delete", "orders")
	wantParts(t, c.do("objectives", "orders"), "No class has an objective")
	if o := c.with("", "explain", "orders", "x"); o.code != cli.ExitUsage {
		t.Errorf("explain of no number: code %d, want %d", o.code, cli.ExitUsage)
	}
}
