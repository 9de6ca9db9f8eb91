// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"
)

func TestWarnings(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{}`, ""},
		{`{"aging": {"interval": "1m", "maxLevel": 9}, "classes": [{"name": "a", "weight": 2}]}`, ""},
		{`{"discipline": "aging", "aging": {"interval": "1m", "maxLevel": 5}, "classes": [{"name": "a", "level": 8}]}`, `aging.maxLevel: class "a" (level 8) is above 5`},
		{`{"classes": [{"name": "a"}, {"name": "b", "when": "x = 1"}]}`, `classes[1]: class "b" never gets a message: class "a" before it takes all`},
		{`{"classes": [{"name": "a", "when": "x = 1"}, {"name": "b", "when": "X=1"}]}`, ""},
		{`{"classes": [{"name": "a", "when": "x = 1"}, {"name": "b", "when": "(x=1)"}]}`, `classes[1].when: class "b" never gets a message: class "a" before it has the same`},
		{`{"classes": [{"name": "a", "when": "sys.SequenceNumber > 4"}]}`, "classes[0].when: sys.SequenceNumber has no value yet"},
		{
			`{"classes": [{"name": "a", "when": "plan = 'paid' AND kind <> 'report'"}]}`,
			`classes[0].when: kind <> 'report' is unknown for messages without kind, so class "a" does not take them; ` +
				`if it should, write (kind IS NULL OR kind <> 'report'); if not, add AND EXISTS(kind)`,
		},
		{`{"classes": [{"name": "a", "when": "NOT (kind = 'report')"}]}`, `classes[0].when: NOT kind = 'report' is unknown for messages without kind`},
		{`{"classes": [{"name": "a", "when": "plan = 'paid' AND (kind IS NULL OR kind <> 'report')"}]}`, ""},
		{`{"classes": [{"name": "a", "when": "plan = 'paid' AND kind <> 'report' AND EXISTS(kind)"}]}`, ""},
		{`{"classes": [{"name": "a", "when": "kind IS NULL"}, {"name": "b", "when": "kind <> 'report'"}]}`, ""},
		{`{"classes": [{"name": "a", "when": "kind = 'report'"}, {"name": "b"}]}`, ""},
		{`{"classes": [{"name": "a", "objective": {"wait": "30s"}}]}`, "classes[0].objective.wait: 30s is shorter than the lock of 1m"},
		{`{"classes": [{"name": "a", "objective": {"wait": "1m"}}]}`, ""},
		{`{"discipline": "deadline", "classes": [{"name": "a", "level": 1}]}`, "classes[0].objective: missing"},
		{`{"discipline": "deadline", "classes": [{"name": "a", "level": 1, "when": "x = 1", "objective": {"wait": "1h"}}]}`, "classes: messages that no class takes"},
		{
			`{"discipline": "weighted", "classes": [{"name": "a", "level": 1, "when": "x = 1"}, {"name": "b", "level": 1}]}`,
			`classes[1].level: class "b" has the level of class "a": under weighted their weights add up`,
		},
		{`{"saturation": {"waiting": 9}, "classes": [{"name": "a", "level": 1}]}`, "saturation: no class has a weight"},
		{
			`{"saturation": {"waiting": 9}, "classes": [{"name": "a", "level": 1, "weight": 2, "when": "x = 1"}, {"name": "b", "level": 1}]}`,
			`classes[1].level: class "b" has the level of class "a": when saturated their weights add up`,
		},
		{`{"classes": [{"name": "a", "overflow": "evict"}]}`, "classes[0].overflow: there is neither"},
		{`{"alerts": {"webhook": "http://x"}}`, "alerts.secret: missing"},
		{`{"alerts": {"secret": "x"}}`, "alerts.secret: there is no webhook"},
	} {
		got := parse(t, tt.policy).Warnings(time.Minute)
		if len(got) > 1 || got.Error() == "" != (tt.want == "") || !strings.HasPrefix(got.Error(), tt.want) {
			t.Errorf("%s:\n%v\nwant %q", tt.policy, got, tt.want)
		}
	}
}

func TestConsequences(t *testing.T) {
	const classes = `"classes": [
		{"name": "urgent", "level": 9, "when": "a = 1", "weight": 6, "objective": {"wait": "5s"}},
		{"name": "paying", "level": 7, "when": "a = 2", "weight": 3, "objective": {"wait": "1m"}, "rate": "10/s"},
		{"name": "free", "level": 2, "weight": 1, "maxMessages": 100, "overflow": "evict"}]}`
	for _, tt := range []struct {
		policy string
		want   []string
	}{
		{`{}`, []string{"strict: the highest level goes first, inside a level the oldest."}},
		{`{"watermarks": {"depth": 50, "bytes": 60}, ` + classes, []string{
			"class urgent (level 9): served before all other classes.",
			"weights are given, but count only under the discipline weighted, or when strict is saturated.",
			"class free (level 2): served only when no message of urgent and paying is ready; it starves while they keep arriving.",
			"class paying: more than 10/s is rejected.",
			"class free: with 100 messages waiting, the oldest of it is evicted for each new one.",
			"with 50 messages or 60 bytes ready in the queue, the lowest level is rejected first",
			"the order in which they are rejected: free, paying and urgent.",
			"the oldest waiting messages of free are evicted",
			"class paying: 95 % are to start within 1m; one whose consumer dies can start again after the lock of 30s.",
		}},
		{`{"discipline": "aging", "aging": {"interval": "2m", "maxLevel": 8}, "fairKey": "tenant", "keyDefaults": {"concurrency": 3, "rate": "5/s"}, ` + classes, []string{
			"aging: a message gains one level for every 2m it waits, up to level 8",
			"class urgent (level 9): is at or above the maximum level of aging",
			"class paying (level 7): rises to level 8 in 2m; no other class that comes later goes ahead of it.",
			"class paying (level 7): there is no bound against urgent, above the cap of 8.",
			"class free (level 2): later messages go ahead of it only if they come soon after it: those of paying within 10m. What comes later than 12m after it, at any level up to 8, waits behind it.",
			"class free (level 2): there is no bound against urgent, above the cap of 8.",
			"inside a level the values of tenant take turns",
			"every key has at most 3 messages in flight and may send at most 5/s; more is rejected.",
		}},
		{`{"discipline": "deadline", ` + classes, []string{
			"a class whose oldest message is late is served by its level instead, after higher classes and before lower ones;",
			"class urgent (objective 5s): nothing that comes later goes ahead of it.",
			"class paying (objective 1m): later messages go ahead of it only if they come soon after it: those of urgent within 55s. That holds until it, or a message of urgent, is late: then there is no bound against urgent.",
			"class free (level 2): has no objective; served only when no message of urgent and paying is ready",
		}},
		{`{"discipline": "weighted", ` + classes, []string{
			"class urgent (weight 6): at least 60 % of the deliveries while it has messages; at most 2 deliveries of other classes between two of its own.",
			"class free (weight 1): at least 10 % of the deliveries while it has messages; at most 11 deliveries of other classes between two of its own.",
		}},
		{`{"aging": {"interval": "1m", "maxLevel": 9}, "classes": [{"name": "own", "when": "a = 1"}]}`, []string{
			"aging is given, but counts only under the discipline aging.",
			"class own: each message has its own level.",
			"messages that no class takes keep the level that they ask for, 4 if none.",
		}},
	} {
		got := strings.Join(parse(t, tt.policy).Consequences(30*time.Second), "\n")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s\ntext:\n%s\nmissing: %s", tt.policy, got, want)
			}
		}
	}
}

func TestDiff(t *testing.T) {
	old := parse(t, shop)
	for _, tt := range []struct{ from, to, want string }{
		{`"revision": 3`, `"revision": 4`, ""},
		{`"discipline": "deadline"`, `"discipline": "strict"`, "the discipline changes from deadline to strict."},
		{`"fairKey": "tenant"`, `"fairKey": "user"`, `the fair key changes from "tenant" to "user".`},
		{`"key": "contoso"`, `"key": "fabrikam"`, "key \"contoso\" loses its own share.\nkey \"fabrikam\" gets its own share: weight 3, concurrency 10, rate 100/s and deliveryRate 30/m."},
		{`"weight": 3`, `"weight": 4`, `the share of key "contoso" changes from weight 3,`},
		{`"depth": 200000, `, ``, "the watermark changes from 200000 messages or 67108864 bytes to 67108864 bytes."},
		{`"level": 8`, `"level": 9`, "the level of class paying changes from 8 to 9."},
		{`AND kind <> 'report'`, ``, "the condition of class paying changes from when plan = 'paid' AND kind <> 'report' to when plan = 'paid'."},
		{`"rate": "500/s"`, `"rate": "500/m"`, "the rate of class free changes from 500/s to 500/m."},
		{`"wait": "10s", "target": 0.99`, `"wait": "20s"`, "the objective of class paying changes from 99 % within 10s to 95 % within 20s."},
		{`"name": "free"`, `"name": "gratis"`, "class free goes.\nclass gratis is new, as number 2: level 2, every message."},
		{`"secret": "s"`, `"secret": "t"`, "the secret of alerts changes."},
	} {
		text := strings.Replace(shop, tt.from, tt.to, 1)
		if text == shop {
			t.Fatalf("%q is not in the policy", tt.from)
		}
		got := strings.Join(Diff(old, parse(t, text)), "\n")
		if got == "" != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s to %s:\n%s\nwant %s", tt.from, tt.to, got, tt.want)
		}
	}
	a, b := `{"name": "a", "when": "x = 1"}`, `{"name": "b", "when": "x > 0"}`
	got := Diff(parse(t, `{"classes": [`+a+`,`+b+`]}`), parse(t, `{"classes": [`+b+`,`+a+`]}`))
	if len(got) != 1 || got[0] != "the classes are asked in another order: b and a." {
		t.Errorf("another order: %q", got)
	}
}
