// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

func TestExampleParses(t *testing.T) {
	c, err := Parse([]byte(Example()))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Queues) != 1 || len(c.Topics) != 1 || len(c.Topics[0].Subscriptions) != 3 {
		t.Errorf("the example has %d queues and topics %+v", len(c.Queues), c.Topics)
	}
}

// TestExampleParsesUncommented makes sure that what the example shows in comments
// is true as well.
func TestExampleParsesUncommented(t *testing.T) {
	var b strings.Builder
	for line := range strings.Lines(Example()) {
		text, commented := strings.CutPrefix(strings.TrimLeft(line, " "), "# ")
		key, _, isKey := strings.Cut(text, ":")
		if item := strings.TrimPrefix(strings.TrimSpace(key), "- "); commented && (isKey && !strings.Contains(item, " ") || strings.HasPrefix(strings.TrimSpace(text), "- {")) {
			line = strings.Replace(line, "# ", "", 1)
		}
		b.WriteString(strings.ReplaceAll(line, "…", "a key of your own"))
	}
	c, err := Parse([]byte(b.String()))
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, b.String())
	}
	if len(c.Security.Rules) != 2 || len(c.Hubs) != 1 || c.Limits.MaxFrameSize != 64<<10 || c.TLS.KeyFile == "" || c.Grace == 0 {
		t.Errorf("uncommented, the example is %+v", c)
	}
}

func TestSettings(t *testing.T) {
	c, err := Parse([]byte(`
namespace: shop
data: /var/lib/triagemq
listeners: ["0.0.0.0:5672", ":5300"]
tls: {certFile: a.pem, keyFile: b.pem, clientCAFile: c.pem}
security: {dev: true, allowRemote: true, insecure: true, hosts: [h], webhookNetworks: [10.0.0.0/8], rules: [{name: root, rights: [manage, Send], primaryKey: p, secondaryKey: s}]}
storage: {shards: 4, segmentSize: 16MiB, cacheSize: 10MB, snapshotAfter: 4096}
limits: {memory: 200MiB, storedMemory: 100MiB, maxConnections: 5, maxLinks: 6, maxFrameSize: 1KiB, handshakeTimeout: 1s, idleTimeout: PT2M, writeTimeout: 3s}
grace: 4s
`))
	if err != nil {
		t.Fatal(err)
	}
	c.source = source{}
	want := Config{
		Namespace: "shop", Data: "/var/lib/triagemq", Listeners: []string{"0.0.0.0:5672", ":5300"},
		TLS: TLS{"a.pem", "b.pem", "c.pem"},
		Security: Security{Dev: true, AllowRemote: true, Insecure: true, Hosts: []string{"h"}, WebhookNetworks: []string{"10.0.0.0/8"}, Rules: entity.AuthorizationRules{
			{KeyName: "root", Rights: []entity.Right{entity.Manage, entity.Send}, PrimaryKey: "p", SecondaryKey: "s"},
		}},
		Storage: Storage{4, 16 << 20, 10e6, 4096},
		Limits:  Limits{200 << 20, 100 << 20, 5, 6, 1024, entity.Duration(time.Second), entity.Duration(2 * time.Minute), entity.Duration(3 * time.Second)},
		Grace:   entity.Duration(4 * time.Second),
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("read as\n%+v, want\n%+v", c, want)
	}
}

func TestQueueProperties(t *testing.T) {
	c, err := Parse([]byte(`
queues:
  - name: 42
    lockDuration: PT30S
    maxSizeInMegabytes: 5
    maxMessageCount: 6
    maxMessageSizeInKilobytes: 7
    requiresDuplicateDetection: true
    duplicateDetectionHistoryTimeWindow: 1h
    requiresSession: true
    defaultMessageTimeToLive: 14d
    deadLetteringOnMessageExpiration: true
    maxDeliveryCount: 3
    enableBatchedOperations: false
    status: sendDisabled
    forwardDeadLetteredMessagesTo: dead
    autoDeleteOnIdle: P10675199DT2H48M5.4775807S
    enablePartitioning: true
    enableExpress: true
    supportOrdering: false
    userMetadata: |
      two
      lines
    authorizationRules: [{keyName: k, rights: [Listen], primaryKey: p}]
    policy: {discipline: aging, classes: [{name: a, level: 8, share: 0.95}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := entity.Queue{
		Name: "42", LockDuration: entity.Duration(30 * time.Second), MaxSizeInMegabytes: 5, MaxMessageCount: 6,
		MaxMessageSizeInKilobytes: 7, RequiresDuplicateDetection: true,
		DuplicateDetectionHistoryTimeWindow: entity.Duration(time.Hour), RequiresSession: true,
		DefaultMessageTimeToLive: entity.Duration(14 * 24 * time.Hour), DeadLetteringOnMessageExpiration: true,
		MaxDeliveryCount: 3, EnableBatchedOperations: new(false), Status: entity.SendDisabled,
		ForwardDeadLetteredMessagesTo: "dead", AutoDeleteOnIdle: entity.Forever, EnablePartitioning: true,
		EnableExpress: true, SupportOrdering: new(false), UserMetadata: "two\nlines\n",
		AuthorizationRules: entity.AuthorizationRules{{KeyName: "k", Rights: []entity.Right{entity.Listen}, PrimaryKey: "p"}},
		Policy:             []byte(`{"classes":[{"level":8,"name":"a","share":0.95}],"discipline":"aging"}`),
	}
	if got := c.Queues[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("read as\n%+v, want\n%+v", got, want)
	}
}

func TestRules(t *testing.T) {
	c, err := Parse([]byte(`
topics:
  - name: jobs
    subscriptions:
      - name: s
        rules:
          - {name: short, filter: "a = 1", action: "SET b = 2"}
          - {name: long, filter: {sql: a = @x, parameters: {x: 5, y: 1.5, z: {type: int, value: 7}}}}
          - {name: all, filter: true}
          - {name: none, filter: false}
          - {name: fields, filter: {correlation: {label: l, properties: {eu: true}}}}
      - {name: d, defaultRule: {filter: {kind: "false"}}}
      - {name: e, rules: []}
`))
	if err != nil {
		t.Fatal(err)
	}
	value := func(in any) entity.Value {
		v, err := entity.NewValue(in)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	want := []entity.Rule{
		{Name: "short", Filter: entity.Filter{SQL: "a = 1"}, Action: entity.Action{SQL: "SET b = 2"}},
		{Name: "long", Filter: entity.Filter{SQL: "a = @x", Parameters: map[string]entity.Value{"x": value(5), "y": value(1.5), "z": value(int32(7))}}},
		{Name: "all", Filter: entity.Filter{Kind: entity.TrueFilter}},
		{Name: "none", Filter: entity.Filter{Kind: entity.FalseFilter}},
		{Name: "fields", Filter: entity.Filter{Correlation: &entity.Correlation{Label: "l", Properties: map[string]entity.Value{"eu": value(true)}}}},
	}
	subs := c.Topics[0].Subscriptions
	if !reflect.DeepEqual(subs[0].Rules, want) {
		t.Errorf("read as\n%+v, want\n%+v", subs[0].Rules, want)
	}
	if subs[1].DefaultRule == nil || subs[1].DefaultRule.Filter.Kind != entity.FalseFilter {
		t.Errorf("the default rule is %+v, want a false filter", subs[1].DefaultRule)
	}
	if subs[2].Rules == nil || len(subs[2].Rules) != 0 {
		t.Errorf("an empty list of rules is read as %#v", subs[2].Rules)
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	c, err := Parse([]byte(`
queues:
  - &base {name: a, lockDuration: &lock 30s, maxDeliveryCount: 5}
  - {<<: *base, name: b, lockDuration: 20s}
  - {name: c, lockDuration: *lock}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := c.Queues[1]
	if got.Name != "b" || got.LockDuration != entity.Duration(20*time.Second) || got.MaxDeliveryCount != 5 {
		t.Errorf("merged as %+v, want b, 20s, 5", got)
	}
	if got := c.Queues[2].LockDuration; got != entity.Duration(30*time.Second) {
		t.Errorf("the alias is %v, want 30s", got)
	}
}

func TestSmallFileCannotBecomeLarge(t *testing.T) {
	var b strings.Builder
	b.WriteString("queues:\n  - name: a\n    policy:\n      l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		name := string(rune('0' + i + 1))
		b.WriteString("      l" + name + ": &l" + name + " [" + strings.Repeat("*l"+string(rune('0'+i))+", ", 10) + "]\n")
	}
	for name, text := range map[string]string{"many": b.String(), "circle": "queues: &q [{name: a, policy: [*q]}]"} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "too deeply") {
			t.Errorf("%s: %v, want it rejected", name, err)
		}
	}
}

func TestEmptyFileSaysNothing(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		c, err := Parse([]byte(text))
		c.source = source{}
		if err != nil || !reflect.DeepEqual(c, Config{}) {
			t.Errorf("%q is read as %+v, %v, want the zero value", text, c, err)
		}
	}
}

func TestLaterSettingsWin(t *testing.T) {
	file, err := Parse([]byte("namespace: file\ndata: file\nqueues: [{name: a}]\nlimits: {maxLinks: 3}\n"))
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"TRIAGEMQ_DATA": "env", "TRIAGEMQ_LISTEN": "localhost:1, localhost:2", "TRIAGEMQ_DEV": "true"}
	environment, err := Environment(func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	got := Default().Merge(file).Merge(environment).Merge(Config{Listeners: []string{"localhost:3"}})
	got.source = source{}
	want := Default()
	want.Namespace, want.Data, want.Listeners = "file", "env", []string{"localhost:3"}
	want.Security.Dev, want.Limits.MaxLinks, want.Queues = true, 3, file.Queues
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged as\n%+v, want\n%+v", got, want)
	}
}

func TestEnvironmentReportsFaults(t *testing.T) {
	variables := map[string]string{"TRIAGEMQ_LISTEN": "5672", "TRIAGEMQ_DEV": "perhaps"}
	_, err := Environment(func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	want := "TRIAGEMQ_DEV: \"perhaps\" is neither true nor false\nTRIAGEMQ_LISTEN: \"5672\" is not host:port"
	if err == nil || err.Error() != want {
		t.Errorf("Environment: %v, want %s", err, want)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.yaml")
	if err := os.WriteFile(path, []byte("odd: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	if !errors.Is(err, errInvalid) || !strings.HasPrefix(err.Error(), "my.yaml:1:1: odd: unknown key") {
		t.Errorf("Load: %v, want the file and the line", err)
	}
	if _, err := Load(path + ".not"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file: %v, want %v", err, os.ErrNotExist)
	}
}

func TestOtherRoomsCanSayWhere(t *testing.T) {
	c, err := Parse([]byte("queues:\n  - name: a\n    policy:\n      classes:\n        - {name: x, when: nonsense}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"queues[0].policy.classes[0].when":  "triagemq.yaml:5:27: queues[0].policy.classes[0].when: bad",
		"queues[0].policy.classes[0].level": "triagemq.yaml:5:11: queues[0].policy.classes[0].level: bad",
		"queues[0].policy.discipline":       "triagemq.yaml:4:7: queues[0].policy.discipline: bad",
	} {
		if got := c.Fault(path, "bad").Error(); got != want {
			t.Errorf("a fault of %s reads\n%s, want\n%s", path, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "4096": 4096, "1KiB": 1024, "256kb": 256000, "64 MiB": 64 << 20, "2GiB": 2 << 30, "3B": 3, "1TB": 1e12} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "9999999999TiB", "1 XB"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	for size, want := range map[Size]string{0: "0", 100: "100", 1 << 10: "1KiB", 64 << 20: "64MiB", 3 << 30: "3GiB"} {
		if got := size.String(); got != want {
			t.Errorf("(%d).String() = %q, want %q", size, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Example())
	f.Add("queues: &q [{name: a, policy: [*q]}]")
	f.Add("a: &a {<<: *a}")
	f.Add("queues:\n- name: a\n  <<: [{lockDuration: 5m}, {x: 1}]")
	f.Add("? complex\n: key")
	f.Add("queues: !!map {}\ntopics: [1, null, {}]")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil {
			if !errors.Is(err, errInvalid) {
				t.Fatalf("%v is not %v", err, errInvalid)
			}
			return // rejecting is fine, panicking is not
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("Validate rejects what Parse accepted: %v", err)
		}
	})
}
