// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

func TestHubSendAndTail(t *testing.T) {
	c := startCLI(t, "hubs: [{name: clicks, partitionCount: 2, consumerGroups: [{name: own}]}, {name: empty}]")
	c.want("Sent 2 events to clicks/Partitions/0.\n", "hub", "send", "clicks", "--partition", "0", "--id", "j", "--body", "a", "--body", "b", "--property", "page=/")
	c.want("Sent 1 event to clicks.\n", "hub", "send", "clicks", "--key", "visitor-7", "--id", "i", "--body", "c")
	if o := c.with("d\ne\n", "hub", "send", "clicks", "--lines", "--partition", "1", "--json"); o.code != 0 || !strings.Contains(o.out, `"sent": 2`) {
		t.Errorf("lines: %+v", o)
	}
	c.want("partition 0  #1  <a time, to the second>  id j\n    page = /\n  b\n",
		"hub", "tail", "clicks", "--partition", "0", "--from", "0", "--count", "1")
	c.want("a\nb\n", "hub", "tail", "clicks", "--partition", "0", "--from", "earliest", "--count", "2", "--body-only", "--group", "own")
	shown := c.do("hub", "tail", "clicks", "--from", "1h", "--wait", "300ms", "--json")
	for _, part := range []string{`"partition":"0"`, `"partition":"1"`, `"partitionKey":"visitor-7"`, `"sequenceNumber":0`, `"body":"e"`, `"page":"/"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is missing in\n%s", part, shown)
		}
	}
	if n := strings.Count(shown, "\n"); n != 5 || strings.Contains(shown, "deliveryCount") || strings.Contains(shown, "priority") {
		t.Errorf("%d events:\n%s", n, shown)
	}
	c.fails(cli.ExitFailed, "no event came", "hub", "tail", "empty", "--wait", "50ms")
	c.fails(cli.ExitFailed, "no event came", "hub", "tail", "clicks", "--wait", "50ms")
	c.fails(cli.ExitFailed, "`triagemq hub list`", "hub", "tail", "none")
	c.fails(cli.ExitFailed, "`triagemq hub show NAME` its groups", "hub", "tail", "clicks", "--group", "none", "--partition", "0")
	c.fails(cli.ExitFailed, "partitions are 0 to 1", "hub", "tail", "clicks", "--partition", "7")
	c.fails(cli.ExitFailed, "partitions are 0 to 1", "hub", "send", "clicks", "--partition", "7", "--body", "x")
	c.fails(cli.ExitUsage, "--from", "hub", "tail", "clicks", "--from", "yesterday")
	c.fails(cli.ExitUsage, "--key", "hub", "send", "clicks", "--key", "k", "--partition", "1", "--body", "x")
}
