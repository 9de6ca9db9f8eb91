// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"testing"

	"github.com/triagemq/triagemq/internal/brokertest"
)

// B3: the dead letters of topics are read at their addresses like those of queues.
func TestDeadLettersOfATopicOverAMQP(t *testing.T) {
	b := serving(brokertest.StartOn(t, brokertest.Strand(t, "t", "a", "b")))
	p := b.login(t, listenRule)
	for _, addr := range []string{"t/$DeadLetterQueue", "amqps://host/T/$transfer/$deadletterqueue"} {
		r := p.receiver(addr, peekLock())
		m := p.next(r)
		if got := string(m.GetData()); got != "a" {
			t.Errorf("%s: got %q, want a", addr, got)
		}
		if err := r.AcceptMessage(p.ctx(), m); err != nil {
			t.Errorf("%s: complete: %v", addr, err)
		}
		reply := p.rpc(addr+"/$management").manage("peek-message",
			map[string]any{"from-sequence-number": int64(0), "message-count": int32(10)}, 200)
		if ms, ok := reply["messages"].([]any); !ok || len(ms) != 1 {
			t.Errorf("%s: peek shows %v, want one", addr, reply)
		}
	}
	rt, err := b.broker.Runtime(t.Context(), "t")
	if err != nil || rt.Dead != 1 || rt.TransferDead != 1 {
		t.Errorf("left: %+v, %v, want one of each", rt.Counts, err)
	}
	wantCondition(t, "the topic itself", receiveFrom(p, "t", nil)(p.session()), "amqp:not-allowed")
}
