// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/cli"
)

const wanted = `
queues:
  - name: orders
    lockDuration: 30s
topics:
  - name: jobs
    subscriptions:
      - name: high
        rules: [{name: high, filter: "Priority = 'High'"}]
`

func TestApply(t *testing.T) {
	c := startCLI(t, "queues: [{name: other}]")
	file := c.file(wanted)
	const diff = `+ queue         orders
      lockDuration: 30s
+ topic         jobs
+ subscription  jobs/high
      rule high: Priority = 'High'
= queue         other is not in the file and stays; --prune would delete it
3 to create, 0 to change, 0 to delete.
`
	c.want(diff+"Nothing was changed: this was a dry run.\n", "apply", "-f", file, "--dry-run")
	c.want(diff+"Done.\n", "apply", "-f", file)
	const nothing = `= queue         other is not in the file and stays; --prune would delete it
Nothing to do: everything is as the file says.
`
	c.want(nothing, "apply", "-f", file)
	if o := c.with(wanted, "apply", "-f", "-"); o.out != nothing {
		t.Errorf("from standard input: %+v", o)
	}

	c.do("queue", "update", "orders", "--max-delivery-count", "3")
	c.do("rule", "update", "jobs", "high", "high", "--filter", "Priority = 'Highest'")
	c.do("rule", "create", "jobs", "high", "more")
	c.want(`~ queue         orders
      maxDeliveryCount: 3 -> 10
~ rule          jobs/high/high
      filter: {"kind":"sql","sql":"Priority = 'Highest'"} -> {"kind":"sql","sql":"Priority = 'High'"}
- rule          jobs/high/more
- queue         other
0 to create, 2 to change, 2 to delete.
Done.
`, "apply", "-f", file, "--prune")
	c.want("Nothing to do: everything is as the file says.\n", "apply", "-f", file, "--prune")
	c.want("{\n  \"steps\": [],\n  \"unmanaged\": [],\n  \"applied\": true\n}\n", "apply", "-f", file, "--json")
}

func TestApplyChangesNothingIfSomethingCannotChange(t *testing.T) {
	c := startCLI(t, "queues: [{name: orders}]")
	o := c.with("queues: [{name: new}, {name: orders, requiresSession: true}]", "apply", "-f", "-")
	if o.code != cli.ExitFailed || !strings.Contains(o.err, "nothing was changed") || !strings.Contains(o.out, "impossible: The value for the RequiresSession") {
		t.Errorf("got %+v", o)
	}
	if list := c.do("queue", "list"); strings.Contains(list, "new") {
		t.Errorf("something was changed:\n%s", list)
	}
}

func TestExportIsWhatApplyReads(t *testing.T) {
	c := startCLI(t, wanted+`
      - name: both
        requiresSession: true
        policy: {discipline: aging, aging: {interval: 1m, maxLevel: 9}}
        rules:
          - {name: a, filter: {sql: "x = @y", parameters: {y: 5}}, action: "SET z = 1"}
          - {name: b, filter: {correlation: {label: invoice, properties: {eu: true}}}}
          - {name: c, filter: false}
`)
	text := c.do("export")
	if o := c.with(text, "apply", "-f", "-", "--prune"); o.out != "Nothing to do: everything is as the file says.\n" {
		t.Errorf("exported\n%sapplied: %+v", text, o)
	}
	if !strings.HasPrefix(text, "queues:\n  - name: orders\n    lockDuration: 30s\ntopics:\n") {
		t.Errorf("exported\n%s", text)
	}
}

func TestExportHidesKeys(t *testing.T) {
	c := startCLI(t, "queues: [{name: q, authorizationRules: [{keyName: k, rights: [Send], primaryKey: hidden key}], "+
		"policy: {classes: [{name: a}], alerts: {webhook: \"https://example.com\", secret: hidden word}}}]")
	o := c.with("", "export")
	if strings.Contains(o.out, "hidden") {
		t.Errorf("a key is exported:\n%s", o.out)
	}
	if want := "The secret of the webhook of q is left out; --keys includes it.\n"; o.err != want {
		t.Errorf("told %q, want %q", o.err, want)
	}
	text := c.do("export", "--keys")
	if strings.Count(text, "hidden") != 2 {
		t.Errorf("no keys are exported:\n%s", text)
	}
	if text := c.do("queue", "show", "q"); strings.Contains(text, "hidden") || !strings.Contains(text, "  strict: a\n") {
		t.Errorf("shown with its secret, or without the classes:\n%s", text)
	}
	if o := c.with(text, "apply", "-f", "-", "--prune"); o.out != "Nothing to do: everything is as the file says.\n" {
		t.Errorf("exported\n%sapplied: %+v", text, o)
	}
}

// Every fault of a file is told at once, with its line, by every command that reads one: a
// misspelt key hides no bad filter, a bad duration no bad policy.
func TestEveryFaultOfAFileAtOnce(t *testing.T) {
	const faulty = `queues:
- name: q
  lockDuraton: 1m
  policy: {discipline: magic}
- name: r
  defaultMessageTimeToLive: soon
topics:
- name: t
  subscriptions:
  - name: s
    rules:
    - name: a
      filter: 'x ='
      action: SET
    - {name: b, filter: {sql: 'y >', kind: SQL}}
`
	want := []string{
		"3:3: queues[0].lockDuraton: unknown key; did you mean lockDuration?",
		"4:24: queues[0].policy.discipline: ",
		"6:29: queues[1].defaultMessageTimeToLive: ",
		"13:15: topics[0].subscriptions[0].rules[0].filter: 1:4: ",
		"14:15: topics[0].subscriptions[0].rules[0].action: 1:4: ",
		"15:25: topics[0].subscriptions[0].rules[1].filter: 1:4: ",
		"15:44: topics[0].subscriptions[0].rules[1].filter.kind: ",
	}
	c := terminal{t: t}
	file := c.file(faulty)
	for _, args := range [][]string{
		{"config", "check", file}, {"serve", "--config", file}, {"apply", "-f", file}, {"apply", "-f", "-"}, {"policy", "check", file},
	} {
		o := c.with(faulty, args...)
		found := strings.Count(o.err, ": queues[") + strings.Count(o.err, ": topics[")
		if o.code == 0 || found != len(want) {
			t.Errorf("%v: code %d, %d faults, want %d:\n%s", args, o.code, found, len(want), o.err)
			continue
		}
		from := 0
		for _, w := range want {
			i := strings.Index(o.err[from:], w)
			if i < 0 {
				t.Errorf("%v: %q is missing or in the wrong place:\n%s", args, w, o.err)
				break
			}
			from += i
		}
	}
}

func TestConfigCheck(t *testing.T) {
	c := terminal{t: t}
	good := c.file(wanted)
	c.want(good+" is fine: 1 queue, 1 topic, 1 subscription, 1 rule.\n", "config", "check", good)
	bad := c.file("queues: [{name: a b, lockDuration: 1h}]\ntopics:\n- {name: t, subscriptions: [{name: s, rules: [{name: r, filter: 'a ='}]}]}\n")
	c.fails(cli.ExitFailed, "has 3 faults", "config", "check", bad)
	sql := c.file("topics:\n- {name: t, subscriptions: [{name: s, rules: [{name: r, filter: 'a =', action: 'SET'}]}]}\n")
	c.fails(cli.ExitFailed, "f.yaml:2:65: topics[0].subscriptions[0].rules[0].filter: 1:4: found the end of the text", "config", "check", sql)
	c.fails(cli.ExitFailed, "has 2 faults", "config", "check", sql)
	aging := c.file("queues: [{name: q, policy: {discipline: aging, aging: {interval: 1m, maxLevel: 9}}}]")
	if text := c.do("config", "check", aging); !strings.HasPrefix(text, "q:\n  ") {
		t.Errorf("what follows from a policy is not told: %s", text)
	}
	policy := c.file("queues: [{name: q, policy: {discipline: magic}}]")
	c.fails(cli.ExitFailed, "queues[0].policy.discipline", "config", "check", policy)
	elsewhere := c.file("queues: [{name: q, forwardDeadLetteredMessagesTo: graves}]")
	c.want("f.yaml:1:51: queues[0].forwardDeadLetteredMessagesTo: \"graves\" is not in the file; a broker that does not have it either refuses the file\n"+
		elsewhere+" is fine: 1 queue, 0 topics, 0 subscriptions, 0 rules.\n", "config", "check", elsewhere)
	example := c.file(c.do("config", "example"))
	c.want(example+" is fine: 1 queue, 1 topic, 3 subscriptions, 3 rules.\n", "config", "check", example)
}
