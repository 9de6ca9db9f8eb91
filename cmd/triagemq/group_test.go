// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/cli"
)

// shows runs a command and checks that its output has these parts.
func (c terminal) shows(parts []string, args ...string) {
	c.t.Helper()
	got := c.do(args...)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			c.t.Errorf("%v: %q is missing in\n%s", args, part, got)
		}
	}
}

func TestGroupCommands(t *testing.T) {
	c := startCLI(t, "hubs: [{name: clicks, partitionCount: 2, consumerGroups: [{name: g}]}]")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c.do("hub", "send", "clicks", "--partition", "1", "--body", "a", "--body", "b", "--body", "c")
	c.shows([]string{
		"PARTITION  STATE  OWNER  EVENTS BEHIND  SIZE BEHIND  TIME BEHIND  EVENTS GONE  SKIPPED  CHECKPOINT  CHECKPOINT AGE\n" +
			"        0  free                      0          0 B           0s            0        0           -               -\n" +
			"        1  free                      3 ",
	}, "group", "lag", "clicks", "$Default")
	group := c.Client().Group("clicks", "g")
	m, err := group.Join(ctx, client.MemberOptions{ID: "web-1", Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(n int) (a client.Assignment) {
		t.Helper()
		for len(a.Grants) != n {
			var err error
			if a, err = m.Next(ctx); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	next(2)
	if each, err := group.Checkpoint(ctx, []client.Checkpoint{{Partition: "1", Epoch: 1, SeqNo: 0}}); err != nil || each[0] != nil {
		t.Fatal(each, err)
	}
	c.shows([]string{
		"group clicks/g\n", "  members        1\n", "  readers        0\n",
		"MEMBER  NAME   STATE      PARTITIONS  SINCE", "\nweb-1   first  connected           2  <a time",
		"\n        1  owned  first      1           0        0              2  <a time",
		"CHANGED ", "        1        first  free",
	}, "group", "show", "clicks", "g")
	c.shows([]string{"        1  owned  first              2 "}, "group", "lag", "clicks", "g")
	c.shows([]string{`"checkpoint": 0`, `"owner": "web-1"`}, "group", "lag", "clicks", "g", "--json")
	c.want("Set partition 1 of group clicks/g to -1h.\n", "group", "rewind", "clicks", "g", "--partition", "1", "--to", "-1h")
	c.shows([]string{"beginning"}, "group", "show", "clicks", "g")
	c.want("Set all partitions of group clicks/g to latest.\n", "group", "rewind", "clicks", "g", "--all", "--to", "latest")
	c.shows([]string{"        1  owned  first              0 "}, "group", "lag", "clicks", "g")
	c.want("Paused partition 0 of group clicks/g for 1h.\n", "group", "pause", "clicks", "g", "--partition", "0", "--for", "1h")
	c.want("Paused all partitions of group clicks/g until they are resumed.\n", "group", "pause", "clicks", "g", "--all")
	c.want("Resumed all partitions of group clicks/g.\n", "group", "resume", "clicks", "g", "--all")
	c.want("Released partition 1 of group clicks/g.\n", "group", "release", "clicks", "g", "--partition", "1", "--cool-down", "10s")

	c.fails(cli.ExitUsage, "partition", "group", "rewind", "clicks", "g", "--to", "earliest")
	c.fails(cli.ExitUsage, "partition", "group", "rewind", "clicks", "g", "--to", "earliest", "--all", "--partition", "1")
	c.fails(cli.ExitUsage, "to", "group", "rewind", "clicks", "g", "--all")
	c.fails(cli.ExitUsage, "partition", "group", "release", "clicks", "g")
	c.fails(cli.ExitFailed, "has to be earliest", "group", "rewind", "clicks", "g", "--all", "--to", "yesterday")
	c.fails(cli.ExitFailed, "partitions of \"clicks\" are 0 to 1", "group", "pause", "clicks", "g", "--partition", "2")
	c.fails(cli.ExitFailed, "no owner", "group", "release", "clicks", "$Default", "--partition", "1")
	c.fails(cli.ExitFailed, "none", "group", "lag", "clicks", "none")
}
