// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

func TestHubCommands(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	if o := c.with("", "hub", "list"); o.code != 0 || o.err != "There are no such hubs.\n" {
		t.Errorf("an empty list: %+v", o)
	}
	c.want("Created hub site/clicks.\n", "hub", "create", "site/clicks", "--partition-count", "2", "--message-retention", "7d", "--group", "b", "--group", "a")
	c.fails(cli.ExitFailed, "exists", "hub", "create", "Site/Clicks")
	c.fails(cli.ExitFailed, "is a queue", "hub", "create", "q")
	c.fails(cli.ExitFailed, "partitionCount: 2000 is outside 1..1024", "hub", "create", "x", "--partition-count", "2000")
	c.fails(cli.ExitUsage, "not a number", "hub", "create", "x", "--partition-count", "two")
	c.want("NAME         STATE   PARTITIONS  EVENTS  SIZE  IN/S  OUT/S  GROUPS  READERS  LAST EVENT\n"+
		"site/clicks  Active           2       0   0 B   0.0    0.0       3        0  -\n", "hub", "list", "--prefix", "SITE")
	c.want("Changed hub site/clicks.\n", "hub", "update", "site/clicks", "--partition-count", "3", "--status", "SendDisabled", "--unset", "messageRetention")
	c.fails(cli.ExitFailed, "cannot be decreased", "hub", "update", "site/clicks", "--partition-count", "2")
	c.fails(cli.ExitUsage, "no property of a hub", "hub", "update", "site/clicks", "--unset", "lockDuration")
	shown := c.do("hub", "show", "site/clicks")
	for _, part := range []string{
		"hub site/clicks\n  state ", "SendDisabled\n", "  messageRetention           1d\n", "  partitionCount             3\n",
		"\n\nPARTITION  FIRST  LAST  EVENTS  SIZE  IN/S  OUT/S  READERS  LAST EVENT\n        0      0    -1       0   0 B   0.0    0.0        0  -\n",
		"\n\nGROUP     READERS  PARTITIONS READ  EVENTS BEHIND  SIZE BEHIND  TIME BEHIND\n$Default        0                0              -            -            -\na ",
	} {
		if !strings.Contains(shown, part) {
			t.Errorf("%q is missing in\n%s", part, shown)
		}
	}
	c.want("Created group site/clicks/c.\n", "group", "create", "site/clicks", "c", "--user-metadata", "ours")
	c.fails(cli.ExitFailed, "exists", "group", "create", "site/clicks", "$Default")
	c.want("Deleted group site/clicks/A.\n", "group", "delete", "site/clicks", "A")
	c.want("GROUP     READERS  PARTITIONS READ  EVENTS BEHIND  SIZE BEHIND  TIME BEHIND\n"+
		"$Default        0                0              -            -            -\n"+
		"b               0                0              -            -            -\n"+
		"c               0                0              -            -            -\n", "group", "list", "site/clicks")
	c.want("group site/clicks/c\n"+
		"  created       <a time, to the second>\n"+
		"  changed       <a time, to the second>\n"+
		"  userMetadata  ours\n"+
		"  readers       0\n", "group", "show", "site/clicks", "c")
	c.fails(cli.ExitFailed, "cannot be deleted", "group", "delete", "site/clicks", "$default")
	c.fails(cli.ExitFailed, "no such entity", "group", "show", "site/clicks", "none")
	c.fails(cli.ExitFailed, "it is a queue", "group", "list", "q")
	c.fails(cli.ExitFailed, "it is a hub", "queue", "show", "site/clicks")
	c.fails(cli.ExitFailed, "disabled", "send", "site/clicks", "--body", "x")
	c.do("hub", "update", "site/clicks", "--unset", "status")
	c.do("send", "site/clicks/Partitions/1", "--body", "x", "--count", "3")
	c.fails(cli.ExitFailed, "partitions are 0 to 2", "send", "site/clicks/Partitions/3", "--body", "x")
	c.fails(cli.ExitFailed, "ConsumerGroups", "receive", "site/clicks")
	c.fails(cli.ExitFailed, "event hub", "peek", "site/clicks")
	if shown := c.do("hub", "show", "site/clicks"); !strings.Contains(shown, "\n        1      0     2       3 ") || !strings.Contains(shown, "\n  events                     3\n") {
		t.Errorf("after three events:\n%s", shown)
	}
	c.fails(cli.ExitFailed, "contains 3 events", "hub", "delete", "site/clicks")
	c.want("Deleted hub site/clicks.\n", "hub", "delete", "site/clicks", "--force")
	c.fails(cli.ExitFailed, "no such entity", "hub", "show", "site/clicks")
}

func TestHubsOfAFile(t *testing.T) {
	const file = `hubs:
  - name: clicks
    partitionCount: 2
    consumerGroups: [dashboard, {name: archive, userMetadata: "all of it"}]
`
	c := startCLI(t, "hubs: [{name: old}, {name: clicks, partitionCount: 1, consumerGroups: [gone]}]")
	c.want(`~ hub           clicks
      partitionCount: 1 -> 2
+ group         clicks/dashboard
+ group         clicks/archive
      userMetadata: all of it
- group         clicks/gone
- hub           old
2 to create, 1 to change, 2 to delete.
Done.
`, "apply", "--prune", "-f", c.file(file))
	c.want("Nothing to do: everything is as the file says.\n", "apply", "--prune", "-f", c.file(file))
	c.want(`hubs:
  - name: clicks
    partitionCount: 2
    consumerGroups:
      - name: archive
        userMetadata: all of it
      - dashboard
`, "export")
	if o := c.with(c.do("export"), "apply", "-f", "-", "--prune"); o.out != "Nothing to do: everything is as the file says.\n" {
		t.Errorf("exported and applied: %+v", o)
	}
	o := c.with("hubs: [{name: clicks, partitionCount: 1}, {name: new}]", "apply", "-f", "-")
	if o.code != cli.ExitFailed || !strings.Contains(o.out, "impossible: The partition count") || strings.Contains(c.do("hub", "list"), "new") {
		t.Errorf("a file that would remove a partition: %+v", o)
	}
}
