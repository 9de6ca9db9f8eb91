// SPDX-License-Identifier: Apache-2.0

package server

import (
	"log/slog"
	"testing"

	"github.com/triagemq/triagemq/internal/config"
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
