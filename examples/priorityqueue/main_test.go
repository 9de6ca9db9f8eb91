// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/priorityqueue/shared"
	"github.com/triagemq/triagemq/triagetest"
)

// start runs a broker with the example's own file and further settings.
func start(t *testing.T, more string) *triagetest.Broker {
	t.Helper()
	yaml, err := os.ReadFile("triagemq.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := triagetest.Start(t, string(yaml)+more)
	t.Setenv("TRIAGEMQ_CONNECTION_STRING", b.ConnectionString())
	return b
}

// story runs the example and returns what it printed.
func story(t *testing.T, workers string, priorities ...string) string {
	t.Helper()
	pools, err := shared.ParsePools(workers)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), &out, pools, priorities, 10, 0); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

func TestEachPoolProcessesItsPriority(t *testing.T) {
	b := start(t, "")
	text := story(t, "high=3,low=1", "Low", "High")
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		_, rest, _ := strings.Cut(line, "  ")
		who, what, processed := strings.Cut(rest, "processed")
		pool, _, _ := strings.Cut(who, "-")
		if processed && !strings.Contains(strings.ToLower(what), pool+" priority") {
			t.Errorf("%s got another pool's message", line)
		}
	}
	if n := strings.Count(text, "processed"); n != 20 {
		t.Errorf("%d processed, want 20\n%s", n, text)
	}
	for _, subscription := range []string{"high", "low"} {
		r, err := b.Client().OpenReceiver(t.Context(), client.Subscription(shared.Topic, subscription), nil)
		if err != nil {
			t.Fatal(err)
		}
		if left, err := r.Peek(t.Context(), 0, 10); err != nil || len(left) > 0 {
			t.Errorf("%s: %d left, %v, want none", subscription, len(left), err)
		}
	}
}

// TestThirdPriority adds what the README says: a subscription, and workers for it.
func TestThirdPriority(t *testing.T) {
	start(t, `
      - name: medium
        rules:
          - {name: medium, filter: "Priority = 'Medium'"}
`)
	text := story(t, "high=3,medium=2,low=1", "Low", "Medium", "High")
	if n := strings.Count(text, "processed  Medium"); n != 10 {
		t.Errorf("%d of medium priority processed, want 10\n%s", n, text)
	}
}
