// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

// A file that forwards to what is not there is reported with its lines, and nothing of it
// is made.
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
	bad.Config = cfg.Config.Merge(file)
	err = Run(t.Context(), bad, slog.New(slog.DiscardHandler))
	const want = `entities: triagemq.yaml:3:26: queues[1].forwardTo: "nowhere" is neither in the file nor in the broker
triagemq.yaml:8:65: topics[0].subscriptions[1].forwardDeadLetteredMessagesTo: "gone" is neither in the file nor in the broker`
	if err == nil || err.Error() != want {
		t.Errorf("it says\n%v, want\n%s", err, want)
	}
	r.start(cfg)
	s := r.session()
	for _, addr := range []string{"new", "a", "t"} {
		if _, err := s.NewSender(r.ctx(), addr, nil); err == nil {
			t.Errorf("%s was made", addr)
		}
	}
}

// The hubs of a file are created, changed and kept like queues. One whose name is taken
// stops the start, one that would shrink stays as it is.
func TestHubsOfAFile(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) {
		c.Hubs = []entity.Hub{{Name: "h", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "a"}}}}
		cfg = *c
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	bad := cfg
	file, err := config.Parse([]byte("queues:\n  - name: h\nhubs:\n  - {name: q}\n"))
	if err != nil {
		t.Fatal(err)
	}
	bad.Config = cfg.Config.Merge(file)
	err = Run(t.Context(), bad, slog.New(slog.DiscardHandler))
	const want = "entities: triagemq.yaml:2:11: queues[0].name: there is an event hub of this name\n" +
		"triagemq.yaml:4:12: hubs[0].name: there is a queue of this name"
	if err == nil || err.Error() != want {
		t.Errorf("it says\n%v, want\n%s", err, want)
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
