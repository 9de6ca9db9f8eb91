// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// A sender that classified its message by a policy that was replaced, and sends it
// when everything else is reclassified already, has to classify it anew.
func TestOutdatedClassIsRefusedAfterReclassification(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"classes": [{"name": "all", "level": 8}]}`)); err != nil {
		t.Fatal(err)
	}
	n, err := r.PolicyEntity("q")
	if err != nil {
		t.Fatal(err)
	}
	old := n.Definition()
	send := func() error {
		answer := make(chan error, 1)
		m := msg("late")
		err := n.Shard.Send(&queueserver.Send{
			Bodies: []*message.Message{m},
			Copies: []queueserver.Copy{{ID: n.ID, Arrival: old.Arrival(m, 0), Revision: old.PolicyRevision}},
			Done:   func(_ []queue.SeqNo, err error) { answer <- err },
		})
		if err != nil {
			return err
		}
		return <-answer
	}
	if err := send(); err != nil {
		t.Fatalf("by the policy in force: %v", err)
	}
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"classes": [{"name": "all", "level": 2}]}`)); err != nil {
		t.Fatal(err)
	}
	if err := send(); !errors.Is(err, queueserver.ErrSuperseded) {
		t.Errorf("by the policy before it: got %v, want %v", err, queueserver.ErrSuperseded)
	}

	// It was refused, not stored: no number from 2 on has to be examined.
	end := func(examined queue.SeqNo) bool {
		t.Helper()
		reply, err := queueserver.Do(t.Context(), n.Shard, queueserver.EndReclassify{ID: n.ID, Revision: n.Definition().PolicyRevision, Examined: examined})
		if err != nil {
			t.Fatal(err)
		}
		return reply.Again
	}
	if end(2) {
		t.Error("no outdated message was stored, and one is looked for")
	}
}
