// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
)

// shop is the policy that the guide explains.
const shop = `{
	"revision": 3,
	"discipline": "deadline",
	"fairKey": "tenant",
	"keys": [{"key": "contoso", "weight": 3, "concurrency": 10, "rate": "100/s", "deliveryRate": "30/m"}],
	"keyDefaults": {"concurrency": 5},
	"watermarks": {"depth": 200000, "bytes": "64MiB"},
	"classes": [
		{"name": "paying", "level": 8, "when": "plan = 'paid' AND kind <> 'report'", "objective": {"wait": "10s", "target": 0.99}},
		{"name": "free", "level": "low", "objective": {"wait": "10m"}, "rate": "500/s", "maxMessages": 100000, "bytes": 4096, "overflow": "evict", "expectedRate": 40}
	],
	"alerts": {"webhook": "https://example.com/hook", "secret": "s"}
}`

func parse(t testing.TB, text string) *Policy {
	t.Helper()
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return p
}

func TestParseReadsEveryField(t *testing.T) {
	p := parse(t, shop)
	want := &Policy{
		Revision: 3, Discipline: ordering.Deadline, FairKey: "tenant",
		Keys:        []Share{{"contoso", 3, 10, Rate{100, time.Second}, Rate{30, time.Minute}}},
		KeyDefaults: Share{Concurrency: 5},
		Watermarks:  Depth{200000, 64 << 20},
		Classes: []Class{
			{Name: "paying", Level: 8, When: "plan = 'paid' AND kind <> 'report'", Objective: Objective{10 * time.Second, .99}},
			{
				Name: "free", Level: 2, Objective: Objective{10 * time.Minute, defaultTarget}, Rate: Rate{500, time.Second},
				MaxMessages: 100000, MaxBytes: 4096, Overflow: Evict, ExpectedRate: Rate{40, time.Second},
			},
		},
		Alerts: Alerts{"https://example.com/hook", "s"},
	}
	if p.fairKey == nil || p.Classes[0].when == nil || p.Classes[1].when != nil {
		t.Errorf("expressions: key %v, paying %v, free %v", p.fairKey, p.Classes[0].when, p.Classes[1].when)
	}
	p.fairKey, p.rules, p.Classes[0].when = nil, nil, nil
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
}

func TestParseOfNothingIsThePlainQueue(t *testing.T) {
	for _, text := range []string{"", " ", "null", "{}"} {
		if p := parse(t, text); !reflect.DeepEqual(p, new(Policy)) {
			t.Errorf("%q: %+v, want the zero policy", text, p)
		}
	}
}

func TestParseFindsFaults(t *testing.T) {
	for _, tt := range []struct{ policy, want string }{
		{`{`, "not JSON"},
		{`{} {}`, "not JSON: more"},
		{`[]`, "must be an object"},
		{`{"colour": "red"}`, "colour: unknown; known are revision, discipline"},
		{`{"disciplin": "strict"}`, "disciplin: unknown; did you mean discipline?"},
		{`{"Classes": []}`, "Classes: unknown; did you mean classes?"},
		{`{"discipline": "random"}`, `discipline: "random" is not one of strict, aging, deadline, weighted`},
		{`{"discipline": 3}`, "discipline: must be text"},
		{`{"discipline": "aging"}`, "aging.interval: missing"},
		{`{"discipline": "aging", "aging": {"interval": "1m"}}`, "aging.maxLevel: missing: without it aging has no bound"},
		{`{"discipline": "aging", "aging": {"interval": "0s", "maxLevel": 9}}`, "aging.interval: must be longer than zero"},
		{`{"discipline": "aging", "aging": {"interval": "soon", "maxLevel": 9}}`, `aging.interval: "soon" is not a duration`},
		{`{"discipline": "aging", "aging": {"interval": "forever", "maxLevel": 9}}`, "aging.interval: forever is longer than a year"},
		{`{"aging": {"maxLevel": 256}}`, `aging.maxLevel: "256" is not a level`},
		{`{"revision": -1}`, "revision: -1 is not a whole number"},
		{`{"revision": 1.5}`, "revision: 1.5 is not a whole number"},
		{`{"fairKey": "a ="}`, "fairKey: 1:4: "},
		{`{"fairKey": 5}`, "fairKey: must be text"},
		{`{"keys": [{"key": "a"}]}`, "keys: there is no fairKey"},
		{`{"fairKey": "t", "keys": [{"weight": 2}]}`, "keys[0].key: missing"},
		{`{"fairKey": "t", "keys": [{"key": "a"}, {"key": "a"}]}`, `keys[1]: key "a" has a share already`},
		{`{"fairKey": "t", "keyDefaults": {"key": "a"}}`, "keyDefaults.key: unknown"},
		{`{"fairKey": "t", "keyDefaults": {"weight": 0}}`, "keyDefaults.weight: 0 is not a whole number in 1"},
		{`{"watermarks": {"depth": 0}}`, "watermarks.depth: 0 is not"},
		{`{"watermarks": {"bytes": "5 apples"}}`, `watermarks.bytes: "5 apples" is not a size`},
		{`{"classes": {}}`, "classes: must be a list"},
		{`{"classes": [1]}`, "classes[0]: must be an object"},
		{`{"classes": [{"level": 1}]}`, "classes[0].name: missing"},
		{`{"classes": [{"name": "two words"}]}`, `classes[0].name: "two words" is no name`},
		{`{"classes": [{"name": ""}]}`, `classes[0].name: "" is no name`},
		{`{"classes": [{"name": "$x"}]}`, `classes[0].name: "$x" is no name`},
		{`{"classes": [{"name": "a"}, {"name": "A"}]}`, `classes[1].name: "A" is the name of classes[0] already`},
		{`{"classes": [{"name": "a", "level": "top"}]}`, `classes[0].level: "top" is not a level`},
		{`{"classes": [{"name": "a", "level": true}]}`, `classes[0].level: must be a level`},
		{`{"classes": [{"name": "a", "when": "plan = = 1"}]}`, "classes[0].when: 1:8: "},
		{`{"classes": [{"name": "a", "weight": 0}]}`, "classes[0].weight: 0 is not"},
		{`{"classes": [{"name": "a", "objective": {}}]}`, "classes[0].objective.wait: missing"},
		{`{"classes": [{"name": "a", "objective": {"wait": "0s"}}]}`, "classes[0].objective.wait: must be longer"},
		{`{"classes": [{"name": "a", "objective": {"wait": "1s", "target": 1}}]}`, "classes[0].objective.target: 1 is outside"},
		{`{"classes": [{"name": "a", "rate": "500/y"}]}`, `classes[0].rate: "500/y" is not a rate`},
		{`{"classes": [{"name": "a", "rate": "0/s"}]}`, `classes[0].rate: rate "0/s" must be greater than zero`},
		{`{"classes": [{"name": "a", "overflow": "drop"}]}`, `classes[0].overflow: "drop" is not one of reject, evict`},
		{`{"classes": [{"name": "a", "maxMessage": 3}]}`, "classes[0].maxMessage: unknown; did you mean maxMessages?"},
		{`{"discipline": "weighted", "classes": [{"name": "a"}]}`, "classes[0].level: missing: under weighted"},
		{`{"alerts": {"webhook": "ftp://x"}}`, `alerts.webhook: "ftp://x" is not an address`},
		{`{"alerts": {"webhook": "https://"}}`, `alerts.webhook: "https://" is not an address`},
	} {
		p, err := Parse([]byte(tt.policy))
		if !errors.Is(err, errInvalid) || !strings.HasPrefix(err.Error(), tt.want) || p != nil {
			t.Errorf("%s: %v, %v; want %q", tt.policy, p, err, tt.want)
		}
	}
}

func TestParseFindsAllFaultsAtOnce(t *testing.T) {
	_, err := Parse([]byte(`{"discipline": "x", "classes": [{"name": "a", "when": "(", "weight": 0}, {"name": "a", "colour": 1}]}`))
	faults, _ := errors.AsType[Faults](err)
	var paths []string
	for _, f := range faults {
		paths = append(paths, f.Path)
	}
	want := "discipline classes[0].when classes[0].weight classes[1].colour classes[1].name"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("faults at %s, want %s", got, want)
	}
	located := faults.Locate(func(path string) string { return "f.yaml:" + path })
	if got := located[1].Error(); !strings.HasPrefix(got, "f.yaml:classes[0].when: classes[0].when: 1:2: ") {
		t.Errorf("located: %s", got)
	}
}

func TestTooManyClasses(t *testing.T) {
	classes := make([]map[string]string, maxClasses+1)
	for i := range classes {
		classes[i] = map[string]string{"name": "c" + strings.Repeat("x", i%32) + string(rune('A'+i/32))}
	}
	raw, err := json.Marshal(map[string]any{"classes": classes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(raw); err == nil || !strings.Contains(err.Error(), "256 classes, at most 255") {
		t.Errorf("error %v, want one about the number of classes", err)
	}
}

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		text, back       string
		perSecond, burst float64
	}{
		{"500/s", "500/s", 500, 500}, {"30/m", "30/m", .5, 30}, {" 3600 / h ", "3600/h", 1, 3600},
		{"7", "7/s", 7, 7}, {"0.5/s", "0.5/s", .5, 1}, {"86400/d", "86400/d", 1, 86400},
	} {
		r, err := parseRate(tt.text)
		if err != nil || r.PerSecond() != tt.perSecond || r.Burst() != tt.burst || r.String() != tt.back {
			t.Errorf("%q: %v (%v/s, burst %v), %v; want %s, %v, %v", tt.text, r, r.PerSecond(), r.Burst(), err, tt.back, tt.perSecond, tt.burst)
		}
	}
	for _, text := range []string{"", "/s", "x/s", "-1/s", "NaN/s", "Inf", "1/", "1/s/s"} {
		if r, err := parseRate(text); err == nil {
			t.Errorf("%q is read as %v", text, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(shop))
	f.Add([]byte(`{"discipline":"aging","aging":{"interval":"1m","maxLevel":9},"classes":[{"name":"a","level":"9"}]}`))
	f.Add([]byte(`{"classes":[null,{"name":null,"level":1e2,"when":"","rate":5}],"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Parse(raw)
		if err != nil {
			for _, fault := range err.(Faults) {
				if fault.Problem == "" {
					t.Fatalf("a fault without words at %q", fault.Path)
				}
			}
			return
		}
		// Whatever is accepted can be used.
		p.Order()
		p.Warnings(time.Minute)
		p.Consequences(time.Minute)
		if d := Diff(p, p); len(d) > 0 {
			t.Fatalf("differs from itself: %q", d)
		}
	})
}

// Stored policies, and files of earlier versions, have the earlier names.
func TestEarlierNamesAreRead(t *testing.T) {
	const earlier = `{"discipline": "aging", "aging": {"every": "1m", "upTo": 9}, "within": "finishFirst", "fairKey": "run",
		"keys": [{"key": "a", "pace": "5/s"}], "watermarks": {"bytes": "1MiB"},
		"classes": [{"name": "a", "objective": {"wait": "1s", "share": 0.9}, "limit": 7, "bytes": "2MiB", "shed": "refuse", "expected": "3/s"}]}`
	const now = `{"discipline": "aging", "aging": {"interval": "1m", "maxLevel": 9}, "levelOrder": "finishFirst", "fairKey": "run",
		"keys": [{"key": "a", "deliveryRate": "5/s"}], "watermarks": {"bytes": "1MiB"},
		"classes": [{"name": "a", "objective": {"wait": "1s", "target": 0.9}, "maxMessages": 7, "maxBytes": "2MiB", "overflow": "reject", "expectedRate": "3/s"}]}`
	was, err := Parse([]byte(earlier))
	if err != nil {
		t.Fatalf("earlier names: %v", err)
	}
	is, err := Parse([]byte(now))
	if err != nil {
		t.Fatalf("names of now: %v", err)
	}
	if changes := Diff(was, is); len(changes) > 0 {
		t.Errorf("they say different things: %q", changes)
	}
	if c := was.Classes[0]; c.MaxMessages != 7 || c.MaxBytes != 2<<20 || c.Objective.Target != 0.9 || was.Watermarks.Bytes != 1<<20 {
		t.Errorf("read as %+v", was)
	}
	_, err = Parse([]byte(`{"within": "lifo", "levelOrder": "fifo", "watermarks": {"maxBytes": 1}}`))
	for _, want := range []string{"within: is the earlier name of levelOrder, which is there too", "watermarks.maxBytes: unknown"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
