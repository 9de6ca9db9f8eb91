// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

func TestQueueCommands(t *testing.T) {
	c := startCLI(t, "")
	if o := c.with("", "queue", "list"); o.code != 0 || o.err != "There are no such queues.\n" {
		t.Errorf("an empty list: %+v", o)
	}
	c.want("Created queue jobs/eu.\n", "queue", "create", "jobs/eu", "--lock-duration", "30s", "--max-delivery-count", "3", "--requires-session=false")
	c.want("Created queue b.\n", "queue", "create", "b")
	c.fails(cli.ExitFailed, "change it with update", "queue", "create", "B")
	c.want("NAME     STATE   ACTIVE  LOCKED  SCHEDULED  DEFERRED  DEAD  SIZE  RECEIVERS\n"+
		"b        Active       0       0          0         0     0   0 B          0\n"+
		"jobs/eu  Active       0       0          0         0     0   0 B          0\n", "queue", "list")
	c.do("send", "jobs/eu", "--body", "x", "--count", "3")
	if list := c.do("queue", "list", "--prefix", "JOBS"); !strings.Contains(list, "\njobs/eu  Active       3 ") {
		t.Errorf("after three were sent:\n%s", list)
	}
	c.want("Changed queue jobs/eu.\n", "queue", "update", "jobs/eu", "--lock-duration", "PT20S", "--unset", "maxDeliveryCount")
	shown := c.do("queue", "show", "jobs/eu")
	for _, part := range []string{"lockDuration                         20s\n", "maxDeliveryCount                     10\n", "3, of which 0 locked", "LEVEL  READY  OLDEST"} {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is missing in\n%s", part, shown)
		}
	}
	c.fails(cli.ExitFailed, "contains 3 messages", "queue", "delete", "jobs/eu")
	c.want("Removed 1 message of queue jobs/eu.\n", "queue", "purge", "jobs/eu", "--count", "1")
	c.want("Removed 2 messages of queue jobs/eu.\n", "queue", "purge", "jobs/eu")
	c.want("Deleted queue jobs/eu.\n", "queue", "delete", "jobs/eu")
	c.fails(cli.ExitFailed, "queue list", "queue", "show", "jobs/eu")
	c.fails(cli.ExitFailed, "cannot be changed", "queue", "update", "b", "--requires-session")
}

func TestPauseAndResume(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.do("send", "q", "--body", "x")
	c.want("Paused receiving of queue q.\n", "queue", "pause", "q")
	c.fails(cli.ExitFailed, "no message received", "receive", "q", "--wait", "50ms")
	c.want("Resumed queue q.\n", "queue", "resume", "q")
	c.want("x\n", "receive", "q", "--body-only")
	c.want("{\n  \"sending\": true\n}\n", "queue", "pause", "q", "--sending", "--json")
	c.fails(cli.ExitFailed, "triagemq queue resume", "send", "q", "--body", "x")
}

func TestTopicsSubscriptionsAndRules(t *testing.T) {
	c := startCLI(t, "")
	c.want("Created topic jobs.\n", "topic", "create", "jobs")
	c.want("Created subscription jobs/high.\n", "subscription", "create", "jobs", "high", "--filter", "Priority = 'High'")
	c.want("Created subscription jobs/all.\n", "sub", "create", "jobs", "all")
	c.want("Rule eu takes: label is \"invoice\" and property region is \"eu\"; SET a = 1.\n",
		"rule", "create", "jobs", "high", "eu", "--match", "label=invoice", "--property", "region=eu", "--action", "SET a = 1")
	c.want("RULE      TAKES                                           CHANGES\n"+
		"$Default  Priority = 'High'\n"+
		"eu        label is \"invoice\" and property region is \"eu\"  SET a = 1\n", "rule", "list", "jobs", "high")
	c.want("Rule eu takes: amount > 5.\n", "rule", "update", "jobs", "high", "eu", "--filter", "amount > 5")
	c.fails(cli.ExitFailed, "no such entity", "rule", "update", "jobs", "high", "none", "--filter", "a = 1")
	c.fails(cli.ExitFailed, "expected a value", "rule", "create", "jobs", "high", "bad", "--filter", "a =")
	c.want(`SUBSCRIPTION  TAKES IT  RULE      WHY
all           yes       $Default  the filter takes every message
high          no        $Default  Priority = 'High' was unknown: Priority is not set
high          yes       eu        amount > 5 was true: amount is 7

2 subscriptions of jobs would take it: all, high.
`, "rule", "test", "jobs", "--property", "amount=7")
	c.want("Deleted rule eu.\n", "rule", "delete", "jobs", "high", "eu")
	c.fails(cli.ExitUsage, "cannot be a name", "rule", "delete", "jobs", "high", "..")
	c.fails(cli.ExitUsage, "cannot be a name", "subscription", "delete", "jobs", "..")
	c.want("RULE      TAKES              CHANGES\n$Default  Priority = 'High'\n", "rule", "show", "jobs", "high", "$Default")
	c.do("send", "jobs", "--body", "x", "--property", "Priority=High")
	c.want("NAME  STATE   ACTIVE  LOCKED  SCHEDULED  DEFERRED  DEAD  RECEIVERS  TAKES\n"+
		"all   Active       1       0          0         0     0          0  everything\n"+
		"high  Active       1       0          0         0     0          0  Priority = 'High'\n", "subscription", "list", "jobs")
	c.fails(cli.ExitFailed, "contains 2 messages", "topic", "delete", "jobs")
	c.want("Removed 1 message of subscription jobs/all.\n", "subscription", "purge", "jobs", "all")
	c.want("Deleted subscription jobs/all.\n", "subscription", "delete", "jobs", "all")
	c.want("NAME  STATE   SUBSCRIPTIONS  SCHEDULED\njobs  Active              1          0\n", "topic", "list")
	c.want("Deleted topic jobs.\n", "topic", "delete", "jobs", "--force")
}

func TestListsAsJSON(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]\ntopics: [{name: t, subscriptions: [{name: s}]}]")
	for _, args := range [][]string{
		{"queue", "list"}, {"topic", "list"}, {"subscription", "list", "t"}, {"rule", "list", "t", "s"},
	} {
		var items []map[string]any
		if err := json.Unmarshal([]byte(c.do(append(args, "--json")...)), &items); err != nil || len(items) != 1 {
			t.Errorf("%v: %v, %v, want one item", args, items, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	tests := []struct {
		code int
		text string
		args []string
	}{
		{cli.ExitUsage, `unknown command "qeue" for triagemq; did you mean queue?`, []string{"qeue"}},
		{cli.ExitUsage, `unknown command "fly" for triagemq queue`, []string{"queue", "fly"}},
		{cli.ExitUsage, "takes 1 argument (NAME)", []string{"queue", "create"}},
		{cli.ExitUsage, "takes 2 arguments (TOPIC NAME)", []string{"subscription", "show", "t"}},
		{cli.ExitUsage, "unknown flag", []string{"send", "q", "--fly"}},
		{cli.ExitUsage, "is not name=value", []string{"send", "q", "--body", "x", "--property", "x"}},
		{cli.ExitUsage, "neither a time", []string{"send", "q", "--body", "x", "--schedule", "soon"}},
		{cli.ExitUsage, "--ttl", []string{"send", "q", "--body", "x", "--ttl", "soon"}},
		{cli.ExitUsage, "numbers from 1", []string{"send", "q", "--body", "x", "--count", "0"}},
		{cli.ExitUsage, "--body and --file do not go together", []string{"send", "q", "--body", "x", "--file", "y"}},
		{cli.ExitUsage, "none of complete, release, abandon, defer, dead-letter", []string{"receive", "q", "--settle", "eat"}},
		{cli.ExitUsage, "belongs to --settle dead-letter", []string{"receive", "q", "--reason", "x"}},
		{cli.ExitUsage, "--settle and --delete do not go together", []string{"receive", "q", "--settle", "defer", "--delete"}},
		{cli.ExitUsage, "is not a number", []string{"queue", "create", "x", "--max-delivery-count", "many"}},
		{cli.ExitUsage, "not a duration", []string{"queue", "create", "x", "--lock-duration", "long"}},
		{cli.ExitUsage, "nothing to change", []string{"queue", "update", "q"}},
		{cli.ExitUsage, "is no property of a queue", []string{"queue", "update", "q", "--unset", "colour"}},
		{cli.ExitUsage, "missing -f FILE", []string{"apply"}},
		{cli.ExitUsage, "--connection-string", []string{"queue", "list", "--connection-string", "nonsense"}},
		{cli.ExitFailed, "triagemq serve --dev", []string{"queue", "list", "--connection-string", "amqp://127.0.0.1:1"}},
		{cli.ExitFailed, "triagemq serve --dev", []string{"send", "q", "--body", "x", "--connection-string", "amqp://127.0.0.1:1"}},
		{cli.ExitFailed, "no such file", []string{"send", "q", "--file", "none"}},
		{cli.ExitFailed, "triagemq queue create NAME", []string{"send", "none", "--body", "x"}},
		{cli.ExitFailed, "outside 5s..5m", []string{"queue", "create", "x", "--lock-duration", "1h"}},
		{cli.ExitFailed, "check the key", []string{"queue", "list", "--connection-string",
			strings.Replace(c.ConnectionString(), "SAS_KEY_VALUE", "wrong", 1)}},
	}
	for _, tt := range tests {
		c.fails(tt.code, tt.text, tt.args...)
	}
}

// What forwards may stand before its target in the file, and dead letters may go in
// a circle.
func TestForwardsInAnyOrderOfTheFile(t *testing.T) {
	c := startCLI(t, `
queues: [{name: a, forwardTo: b}, {name: b, forwardTo: t}, {name: c, forwardDeadLetteredMessagesTo: d}, {name: d, forwardDeadLetteredMessagesTo: c}]
topics: [{name: t, subscriptions: [{name: s, forwardTo: c}]}]`)
	c.do("send", "b", "--body", "x") // which makes four hops; from a it would be one too many
	c.want("x\n", "receive", "c", "--body-only", "--settle", "dead-letter")
	c.want("x\n", "receive", "d", "--body-only", "--settle", "dead-letter")
	c.want("x\n", "receive", "c", "--body-only")
	c.fails(cli.ExitFailed, `"nowhere" does not exist`, "queue", "create", "e", "--forward-to", "nowhere")
}
