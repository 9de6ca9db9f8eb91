// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
)

// A new topic has no receiver, and neither has a queue that nobody reads: what the broker
// itself forwards and publishes with is none.
func TestForwardersAreNoReceivers(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "target"})
	r.queue(entity.Queue{Name: "forwarding", ForwardTo: "target", ForwardDeadLetteredMessagesTo: "target"})
	r.topic(entity.Topic{Name: "news"})
	for _, name := range []string{"news", "forwarding"} {
		rt, err := r.Runtime(t.Context(), name)
		if err != nil || rt.Receivers != 0 {
			t.Errorf("%s: %d receivers, %v, want none", name, rt.Receivers, err)
		}
	}
	r.receive("forwarding/$DeadLetterQueue", 1, ReceiverOptions{})
	if rt, err := r.Runtime(t.Context(), "forwarding"); err != nil || rt.Receivers != 1 {
		t.Errorf("with a reader of dead letters: %d receivers, %v, want it", rt.Receivers, err)
	}
}
