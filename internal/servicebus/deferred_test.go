// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bytes"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/limits"
)

// deferMessages sends messages of a size to q and defers them.
func (p *peerOf) deferMessages(n, size int) (seqs []int64) {
	p.t.Helper()
	body := bytes.Repeat([]byte("x"), size)
	r := p.receiver("q", peekLock())
	for range n {
		p.send("q", amqp.NewMessage(body))
		m := p.next(r)
		if err := r.ModifyMessage(p.ctx(), m, &amqp.ModifyMessageOptions{UndeliverableHere: true}); err != nil {
			p.t.Fatal(err)
		}
		seqs = append(seqs, m.Annotations["x-opt-sequence-number"].(int64))
	}
	return seqs
}

// A number that is asked for twice, in receive-and-delete, is one message,
// and that arrives.
func TestDeferredNumberGivenTwiceIsNotLost(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	seqs := p.deferMessages(1, 10)
	get := map[string]any{"sequence-numbers": []int64{seqs[0], seqs[0]}, "receiver-settle-mode": uint32(0)}
	got := entries(t, p.rpc("q/$management").manage("receive-by-sequence-number", get, 200), "messages")
	if len(got) != 1 {
		t.Fatalf("got %d messages, want 1", len(got))
	}
	if rt, err := b.broker.Runtime(p.ctx(), "q"); err != nil || rt.Deferred != 0 {
		t.Fatalf("%d messages are still deferred, %v", rt.Deferred, err)
	}
}

// What does not fit into the reply of a receive by number stays where it is,
// whether messages are deleted or locked.
func TestDeferredBeyondTheReplyStayDeferred(t *testing.T) {
	for _, mode := range []uint32{0, 1} {
		b := start(t)
		p := b.login(t, rootRule)
		const n, size = 40, 250_000 // ten million bytes
		seqs := p.deferMessages(n, size)
		mgmt := p.rpc("q/$management")
		seen := map[int64]bool{}
		for len(seqs) > 0 {
			get := map[string]any{"sequence-numbers": seqs, "receiver-settle-mode": mode}
			got := entries(t, mgmt.manage("receive-by-sequence-number", get, 200), "messages")
			if len(got)*size > limits.ReplyBytes {
				t.Errorf("mode %d: a reply of %d bytes, the limit is %d", mode, len(got)*size, limits.ReplyBytes)
			}
			for _, e := range got {
				m := unmarshal(t, e["message"])
				if len(m.GetData()) != size {
					t.Fatalf("a body of %d bytes, want %d", len(m.GetData()), size)
				}
				seen[m.Annotations["x-opt-sequence-number"].(int64)] = true
			}
			var rest []int64
			for _, seq := range seqs {
				if !seen[seq] {
					rest = append(rest, seq)
				}
			}
			if len(rest) == len(seqs) {
				t.Fatalf("%d messages are left and none comes", len(rest))
			}
			seqs = rest
		}
		if len(seen) != n {
			t.Fatalf("got %d messages, want %d", len(seen), n)
		}
	}
}
