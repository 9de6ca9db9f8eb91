// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/load"
)

func TestBenchOfItsOwnBroker(t *testing.T) {
	var out, err bytes.Buffer
	args := []string{"bench", "--embedded", "--data", t.TempDir(), "--count", "1000", "--backlog", "500", "--json", "-q"}
	if code := run(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err}); code != 0 {
		t.Fatalf("code %d: %s", code, err.String())
	}
	var report load.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if report.In.Messages != 1000 || report.Out.Messages != 1500 || report.Missing != 0 {
		t.Errorf("report %+v, want 1000 in, 1500 out, none missing", report)
	}
}

func TestBenchRefusesNonsense(t *testing.T) {
	tests := []struct {
		args []string
		code int
		text string
	}{
		{[]string{"bench", "--mode", "sideways"}, cli.ExitUsage, "none of send, receive, inout"},
		{[]string{"bench", "--connection-string", "http://localhost"}, cli.ExitUsage, "neither amqp nor amqps"},
		{[]string{"bench", "--connection-string", "amqp://127.0.0.1:1"}, cli.ExitFailed, "connection refused"},
		{[]string{"bench", "--embedded", "--data", "/none/such"}, cli.ExitFailed, "make a store"},
	}
	for _, tt := range tests {
		var out, err bytes.Buffer
		code := run(t.Context(), tt.args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err})
		if code != tt.code || !strings.Contains(err.String(), tt.text) {
			t.Errorf("%v: code %d, %q, want %d and %q", tt.args, code, err.String(), tt.code, tt.text)
		}
	}
}

// The broker is that of the environment, as for every other command.
func TestBenchTakesTheConnectionOfOtherCommands(t *testing.T) {
	c := startCLI(t, "queues: [{name: work}]")
	out := c.do("bench", "--queue", "work", "--count", "100", "--senders", "1", "--receivers", "1", "-q")
	if !strings.Contains(out, "100 in ") {
		t.Errorf("bench printed\n%s", out)
	}
	c.do("bench", "--connection-string", c.ConnectionString(), "--queue", "new", "--count", "1", "-q")
	c.do("queue", "show", "new")
}

func TestBenchSaysThatTheQueueWasFullBeforeTheBacklog(t *testing.T) {
	c := startCLI(t, "queues: [{name: small, maxMessageCount: 30}]")
	c.fails(cli.ExitFailed, `queue "small" accepted 30 of 1000 messages of the backlog: the broker rejected a message: `,
		"bench", "--queue", "small", "--backlog", "1000", "--window", "5", "--count", "1", "-q")
}
