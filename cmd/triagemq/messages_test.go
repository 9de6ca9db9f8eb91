// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
	"github.com/triagemq/triagemq/internal/cli/messages"
	"github.com/triagemq/triagemq/internal/entity"
)

func TestSendAndReceiveByPriority(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.want("Sent 1 message to q.\n", "send", "q", "--body", "low", "-p", "low")
	c.want("Sent 2 messages to q.\n", "send", "q", "--body", "a", "--body", "b")
	c.want("Sent 1 message to q.\n", "send", "q", "--body", "high", "--property", "Priority=High")
	c.want("high\na\nb\nlow\n", "receive", "q", "--count", "0", "--wait", "100ms", "--body-only")
	c.fails(cli.ExitFailed, "no message received from q within 50ms", "receive", "q", "--wait", "50ms")
}

func TestSendReadsInput(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	if o := c.with("one\ntwo\n\nthree", "send", "q", "--lines"); o.out != "Sent 4 messages to q.\n" {
		t.Errorf("lines: %+v", o)
	}
	c.want("one\ntwo\n\nthree\n", "receive", "q", "-n", "4", "--body-only")
	if o := c.with("all\nof it", "send", "q"); o.out != "Sent 1 message to q.\n" {
		t.Errorf("input: %+v", o)
	}
	c.want("all\nof it\n", "receive", "q", "--body-only")
	c.want("Sent 1 message to q.\n", "send", "q", "--file", c.file("from a file"))
	c.want("from a file\n", "receive", "q", "--body-only", "--delete")
	c.want("Sent 250 messages to q.\n", "send", "q", "--body", "x", "--count", "250", "--batch", "7")
	if got := c.do("receive", "q", "-n", "0", "--wait", "100ms", "--body-only"); strings.Count(got, "x\n") != 250 {
		t.Errorf("%d came, want 250", strings.Count(got, "x\n"))
	}
	c.want("", "send", "q", "--body", "x", "--quiet")
}

func TestReceiveShowsWhatThereIs(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.do("send", "q", "--body", "hi\nthere", "--id", "7", "--subject", "greeting", "--correlation-id", "6", "-p", "9",
		"--property", "amount=5", "--property", "eu=true", "--property", `text="5"`, "--property", "name=x y")
	c.want(`#1  level 9  <a time, to the second>  id 7  subject greeting  correlation 6
    amount = 5
    eu = true
    name = x y
    text = 5
  hi
  there
`, "receive", "q", "--settle", "release")
	var m messages.ShownMessage
	if err := json.Unmarshal([]byte(c.do("receive", "q", "--json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Body != "hi\nthere" || m.BodyType != "text" || m.Properties["amount"] != 5.0 || m.Properties["text"] != "5" || m.Properties["eu"] != true {
		t.Errorf("as JSON: %+v", m)
	}
}

// The level and class are those by which the queue serves a message, and not what its
// sender asked for, or "normal" where the policy of the queue decides.
func TestReceiveAndPeekShowTheTrueLevelAndClass(t *testing.T) {
	c := startCLI(t, `
queues:
- name: q
  policy:
    classes:
    - {name: paying, level: 8, when: "plan = 'paid'"}
    - {name: free, level: 3, when: "plan = 'free'"}
`)
	c.do("send", "q", "--body", "a", "--id", "1", "--property", "plan=paid")
	c.do("send", "q", "--body", "b", "-p", "9", "--property", "plan=free")
	c.do("send", "q", "--body", "c", "--id", "3")
	c.want("NUMBER  STATE  LEVEL  CLASS   ENQUEUED                 FAILED  SESSION  BODY\n"+
		"     1  ready      8  paying  <a time, to the second>       0           a\n"+
		"     2  ready      3  free    <a time, to the second>       0           b\n"+
		"     3  ready      4          <a time, to the second>       0           c\n", "peek", "q")
	c.want("#1  paying (level 8)  <a time, to the second>  id 1\n    plan = paid\n  a\n", "peek", "q", "--full", "-n", "1")
	c.want("#1  paying (level 8)  <a time, to the second>  id 1\n    plan = paid\n  a\n", "receive", "q")
	c.want("#3  level 4  <a time, to the second>  id 3\n  c\n", "receive", "q", "--settle", "release")
	var m messages.ShownMessage
	if err := json.Unmarshal([]byte(c.do("receive", "q", "--json", "--max-priority", "free")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Level == nil || *m.Level != 3 || m.Class != "free" || m.Priority != "9" {
		t.Errorf("as JSON: %+v, want level 3, class free, and the priority 9 that was asked for", m)
	}
}

// What the broker says is told without the names of packages.
func TestErrorsNameNoPackages(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.fails(cli.ExitFailed, `open receiver of "q": invalid message or option: the policy has no class "nope"`, "receive", "q", "--min-priority", "nope", "--wait", "1s")
	c.fails(cli.ExitFailed, `open sender to "none": entity not found: The messaging entity`, "send", "none", "--body", "x")
}

func TestReceiveDispositions(t *testing.T) {
	c := startCLI(t, "queues: [{name: q, maxDeliveryCount: 3}]")
	c.do("send", "q", "--body", "a", "--body", "b")
	c.want("a\nb\n", "receive", "q", "-n", "2", "--body-only", "--settle", "release")
	c.want("a\n", "receive", "q", "--body-only", "--settle", "abandon")
	c.want("a\n", "receive", "q", "--body-only", "--settle", "defer")
	c.want("b\n", "receive", "q", "--body-only", "--settle", "dead-letter", "--reason", "no good")
	c.want("NUMBER  STATE     LEVEL  ENQUEUED                 FAILED  SESSION  BODY\n     1  deferred      4  <a time, to the second>       2           a\n", "peek", "q")
}

func TestSessions(t *testing.T) {
	c := startCLI(t, "queues: [{name: q, requiresSession: true}]")
	c.do("send", "q", "--body", "a", "--session", "s1")
	c.do("send", "q", "--body", "b", "--session", "s2")
	c.fails(cli.ExitFailed, "--next-session", "receive", "q", "--wait", "50ms")
	c.want("b\n", "receive", "q", "--session", "s2", "--body-only")
	c.want("a\n", "receive", "q", "--next-session", "--body-only")
	c.fails(cli.ExitFailed, "no session of q", "receive", "q", "--next-session", "--wait", "50ms")
}

func TestSchedule(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.want("Sent 1 message to q, due at <a time, to the second>.\n", "send", "q", "--body", "later", "--schedule", "1h")
	c.want("Sent 1 message to q, due at <a time, to the second>.\n", "send", "q", "--body", "at", "--schedule", "2099-01-31T12:00:00Z")
	c.want("NUMBER  STATE      LEVEL  ENQUEUED                 FAILED  SESSION  BODY\n"+
		"     1  scheduled      4  <a time, to the second>       0           later\n"+
		"     2  scheduled      4  <a time, to the second>       0           at\n", "peek", "q")
}

func TestPeekChooses(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	for _, region := range []string{"eu", "us", "eu"} {
		c.do("send", "q", "--body", region, "--property", "region="+region, "--id", "i")
	}
	c.want("#1  level 4  <a time, to the second>  id i\n    region = eu\n  eu\n\n#3  level 4  <a time, to the second>  id i\n    region = eu\n  eu\n",
		"peek", "q", "--full", "--filter", "region = 'eu'")
	if got := c.do("peek", "q", "--json", "--from", "2", "-n", "1"); !strings.HasPrefix(got, `{"sequenceNumber":2,"state":"ready","level":4,`) {
		t.Errorf("as JSON: %s", got)
	}
	long := strings.Repeat("long ", 2000)
	c.do("send", "q", "--body", long)
	if got := c.do("peek", "q", "--full", "--from", "4"); !strings.Contains(got, long) {
		t.Errorf("a long body is cut: %d bytes", len(got))
	}
	if o := c.with("", "peek", "q", "--filter", "region = 'none'"); o.code != 0 || o.err != "There are no such messages in q.\n" {
		t.Errorf("nothing found: %+v", o)
	}
}

// B3: those that could not be forwarded, and those of topics.
func TestTransferDeadLetters(t *testing.T) {
	c := startCLI(t, "queues: [{name: q, forwardTo: nowhere}, {name: nowhere}]\ntopics: [{name: t}]")
	c.do("queue", "delete", "nowhere")
	c.do("send", "q", "--body", "a")
	c.want("a\n", "receive", "q/$Transfer/$DeadLetterQueue", "--body-only", "--settle", "release")
	if got := c.do("deadletter", "list", "q", "--transfer"); !strings.Contains(got, "ForwardingFailed") {
		t.Errorf("the list does not say why: %s", got)
	}
	c.do("queue", "create", "nowhere")
	c.want("Moved 1 dead letter of q/$Transfer/$DeadLetterQueue.\n", "deadletter", "redrive", "q", "--transfer")
	c.want("a\n", "receive", "nowhere", "--body-only")

	for _, flags := range [][]string{nil, {"--transfer"}} {
		if o := c.with("", append([]string{"deadletter", "list", "t"}, flags...)...); o.code != 0 || !strings.HasPrefix(o.err, "There are no such dead letters in t/$") {
			t.Errorf("list those of a topic: %+v", o)
		}
		for verb, done := range map[string]string{"redrive": "Moved", "purge": "Removed"} {
			if got := c.do(append([]string{"deadletter", verb, "t"}, flags...)...); !strings.HasPrefix(got, done+" 0 dead letters of t/$") {
				t.Errorf("%s those of a topic: %s", verb, got)
			}
		}
	}
}

func TestDeadLetters(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}, {name: repair}]\ntopics: [{name: t, subscriptions: [{name: s}]}]")
	kill := func(entity string, more ...string) {
		c.do(append([]string{"receive", entity, "-n", "3", "--body-only", "--settle", "dead-letter", "--reason", "no good"}, more...)...)
	}
	c.do("send", "q", "--body", "a", "--property", "n=1", "--id", "i")
	c.do("send", "q", "--body", "b", "--property", "n=2", "--id", "i")
	c.do("send", "q", "--body", "c", "--property", "n=3", "--id", "i")
	kill("q", "--description", "really")
	c.want("NUMBER  ENQUEUED                 FAILED  REASON   DESCRIPTION  BODY\n"+
		"     1  <a time, to the second>       0  no good  really       a\n"+
		"     2  <a time, to the second>       0  no good  really       b\n"+
		"     3  <a time, to the second>       0  no good  really       c\n", "deadletter", "list", "q")
	c.want("#2  level 4  <a time, to the second>  id i  dead letter no good  because really\n    n = 2\n  b\n", "deadletter", "show", "q", "2")
	c.want("Moved 1 dead letter of q/$DeadLetterQueue to repair; 2 stay.\n", "deadletter", "redrive", "q", "--to", "repair", "--filter", "n = 2")
	c.want("b\n", "receive", "repair", "--body-only")
	c.want("Removed 1 dead letter of q/$DeadLetterQueue.\n", "deadletter", "purge", "q", "--filter", "n = 3")
	c.want("Moved 1 dead letter of q/$DeadLetterQueue.\n", "deadletter", "redrive", "q", "--rate", "100")
	c.want("a\n", "receive", "q", "--body-only")

	c.do("send", "t", "--body", "x", "--count", "3")
	kill("t", "-s", "s")
	c.want("{\n  \"moved\": 2,\n  \"skipped\": 0\n}\n", "dlq", "redrive", "t", "-s", "s", "--count", "2", "--json")
	c.want("Removed 1 dead letter of t/Subscriptions/s/$DeadLetterQueue.\n", "dlq", "purge", "t", "-s", "s")
	c.fails(cli.ExitUsage, "not a sequence number", "deadletter", "show", "q", "x")
	c.fails(cli.ExitFailed, "No message has that number", "deadletter", "show", "q", "99")
}

// A priority that is misspelt is an error here; from others it is counted, and
// explain says what it was taken for.
func TestUnknownPriorities(t *testing.T) {
	c := startCLI(t, "queues: [{name: q}]")
	c.fails(cli.ExitUsage, `--priority: "hgih" is neither a level from 0 to 255 nor critical, high, normal, low or background`,
		"send", "q", "--body", "x", "--priority", "hgih")
	c.fails(cli.ExitUsage, "--priority", "send", "q", "--body", "x", "--priority", "300")
	c.do("send", "q", "--body", "x", "--property", "Priority=hgih")
	c.do("send", "q", "--body", "x", "--priority", "HIGH")
	if got := c.do("explain", "q", "1"); !strings.Contains(got, `level 4, because it asks for none (its property Priority is hgih, which is no level and no name of one: critical, high, normal, low, background)`) {
		t.Errorf("explain says\n%s", got)
	}
	if got := c.do("queue", "list"); !strings.Contains(got, " 2 ") {
		t.Errorf("want the two messages that were sent:\n%s", got)
	}
}

// The time to live that is shown is the one that holds, in every way to look at a
// message.
func TestTimeToLiveThatHolds(t *testing.T) {
	c := startCLI(t, "queues: [{name: q, defaultMessageTimeToLive: 1h}]")
	c.do("send", "q", "--body", "none")
	c.do("send", "q", "--body", "longer", "--ttl", "14d")
	c.do("send", "q", "--body", "shorter", "--ttl", "5m")
	want := map[string]string{"none": "1h", "longer": "1h", "shorter": "5m"}
	for _, args := range [][]string{{"peek", "q", "--json"}, {"receive", "q", "-n", "3", "--json"}} {
		got := map[string]string{}
		for d := json.NewDecoder(strings.NewReader(c.do(args...))); d.More(); {
			var m messages.ShownMessage
			if err := d.Decode(&m); err != nil {
				t.Fatal(err)
			}
			ttl, err := entity.ParseDuration(m.TimeToLive)
			if err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			got[fmt.Sprint(m.Body)] = ttl.String()
		}
		if !maps.Equal(got, want) {
			t.Errorf("%v shows %v, want %v", args, got, want)
		}
	}
}
