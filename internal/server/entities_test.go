// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/vfs"
)

// On a new store, a file that forwards to what is not there is reported with its lines, and
// nothing of it is made.
func TestFileThatCannotBeFollowedChangesNothing(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) { cfg = *c })
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	file, err := config.Parse([]byte(`queues:
  - name: new
  - {name: a, forwardTo: nowhere}
topics:
  - name: t
    subscriptions:
      - {name: s}
      - {name: on, forwardTo: q, forwardDeadLetteredMessagesTo: gone}
`))
	if err != nil {
		t.Fatal(err)
	}
	bad := cfg
	bad.FS = vfs.NewMem()
	bad.Config = cfg.Config.Merge(file)
	err = Run(r.ctx(), bad, slog.New(slog.DiscardHandler))
	const want = `entities: triagemq.yaml:3:26: queues[1].forwardTo: "nowhere" is neither in the file nor in the broker
triagemq.yaml:8:31: topics[0].subscriptions[1].forwardTo: "q" is neither in the file nor in the broker
triagemq.yaml:8:65: topics[0].subscriptions[1].forwardDeadLetteredMessagesTo: "gone" is neither in the file nor in the broker`
	if err == nil || err.Error() != want {
		t.Errorf("it says\n%v, want\n%s", err, want)
	}
	cfg.FS = bad.FS
	r.start(cfg)
	s := r.session()
	for _, addr := range []string{"new", "a", "t"} {
		if _, err := s.NewSender(r.ctx(), addr, nil); err == nil {
			t.Errorf("%s was made", addr)
		}
	}
}

// The hubs of a file are created, changed and kept like queues. One that would shrink stays
// as it is.
func TestHubsOfAFile(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) {
		c.Hubs = []entity.Hub{{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "a"}}}}
		cfg = *c
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}

	cfg.Hubs = []entity.Hub{{Name: "h", PartitionCount: 1, ConsumerGroups: []entity.ConsumerGroup{{Name: "b"}}}, {Name: "more"}}
	r.start(cfg)
	_, got := r.do("GET", "/api/v1/hubs/h", "")
	for _, part := range []string{`"partitionCount":2`, `{"name":"a"`, `{"name":"b"`, `"id":"1"`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	if _, got := r.do("GET", "/api/v1/hubs/more", ""); !strings.Contains(got, `"partitionCount":4`) {
		t.Errorf("a new hub is %s", got)
	}
}

// Nothing that clients did over the wire keeps the broker from starting. What it could not
// apply of the configuration shows in the log, in /readyz and, with reasons, in the namespace.
func TestWhatIsStoredDoesNotKeepTheBrokerFromStarting(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) { cfg = *c })
	var groups []string
	for i := range limits.ConsumerGroups - 1 {
		groups = append(groups, fmt.Sprintf(`{"name":"g%d"}`, i))
	}
	for _, made := range [][2]string{
		{"hubs", `{"name":"full","partitionCount":1,"consumerGroups":[{"name":"$Default"},` + strings.Join(groups, ",") + `]}`},
		{"hubs", `{"name":"hub","partitionCount":2}`},
		{"queues", `{"name":"queue"}`},
		{"queues", `{"name":"back","forwardTo":"q"}`},
		{"topics", `{"name":"topic"}`},
		{"topics/topic/subscriptions", `{"name":"all","requiresSession":true}`},
	} {
		if res, text := r.do("POST", "/api/v1/"+made[0], made[1]); res.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %s %.300s", made[0], res.Status, text)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	file, err := config.Parse([]byte(`
queues:
  - {name: hub}
  - {name: topic}
  - {name: queue, requiresSession: true, maxDeliveryCount: 3}
  - {name: nowhere, forwardTo: gone}
  - {name: circle, forwardTo: back}
  - {name: new}
topics:
  - {name: queue2, subscriptions: [{name: s}]}
  - {name: back, subscriptions: [{name: s}]}
  - {name: topic2}
hubs:
  - {name: full, consumerGroups: [more]}
  - {name: queue3, partitionCount: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	again := cfg
	again.Config = cfg.Config.Merge(file)
	r.start(again)
	if res, text := r.do("GET", "/readyz", ""); res.StatusCode != http.StatusOK || !strings.HasPrefix(text, "degraded: parts of the configuration") || strings.Contains(text, "hub") {
		t.Errorf("/readyz: %s %q", res.Status, text)
	}
	_, got := r.do("GET", "/api/v1/namespace", "")
	for _, want := range []string{
		`create queue hub: there is an event hub of this name`,
		`create queue topic: there is a topic of this name`,
		`update queue queue: The value for the RequiresSession property`,
		`create queue nowhere: forwardTo: \"gone\" is neither in the file nor in the broker`,
		`create topic back: there is a queue of this name`,
		`create subscription back/s: `,
		`create group full/more: `,
	} {
		if !strings.Contains(got, "not applied of the configuration: "+want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	for _, path := range []string{"queues/new", "queues/circle", "topics/queue2/subscriptions/s", "topics/topic2", "hubs/queue3", "hubs/full"} {
		if res, text := r.do("GET", "/api/v1/"+path, ""); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %.200s", path, res.Status, text)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.start(cfg) // a file without conflicts
	if _, text := r.do("GET", "/readyz", ""); text != "ok\n" {
		t.Errorf("/readyz: %q, want ok", text)
	}
}

// With less memory for stored state than the definitions take, the broker starts and says so.
func TestDefinitionsBeyondTheMemoryDoNotKeepTheBrokerFromStarting(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) { cfg = *c })
	var numbers, rules []string
	for i := range 200 {
		numbers = append(numbers, fmt.Sprint(i))
	}
	for i := range 100 {
		rules = append(rules, fmt.Sprintf(`{"name":"r%d","filter":{"sql":"a IN (%s)"}}`, i, strings.Join(numbers, ",")))
	}
	for _, made := range [][2]string{
		{"topics", `{"name":"topic"}`},
		{"topics/topic/subscriptions", `{"name":"large","rules":[` + strings.Join(rules, ",") + `]}`},
	} {
		if res, text := r.do("POST", "/api/v1/"+made[0], made[1]); res.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %s %.300s", made[0], res.Status, text)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Limits.StoredMemory = 16 << 20
	r.start(cfg)
	if res, text := r.do("GET", "/readyz", ""); res.StatusCode != http.StatusOK || !strings.HasPrefix(text, "degraded: definitions take more memory") {
		t.Errorf("/readyz: %s %q", res.Status, text)
	}
	if _, got := r.do("GET", "/api/v1/namespace", ""); !strings.Contains(got, "raise limits.storedMemory") {
		t.Errorf("the namespace is %s", got)
	}
	if res, text := r.do("POST", "/api/v1/queues", `{"name":"more"}`); res.StatusCode != http.StatusForbidden || !strings.Contains(text, `"quota"`) {
		t.Errorf("one more queue: %s %s", res.Status, text)
	}
}
