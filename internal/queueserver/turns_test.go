// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Operations that name very many messages take turns with each other: a sender does not wait
// until all of those are done that were asked for before, and they are all answered.
func TestOperationsOnManyMessagesTakeTurns(t *testing.T) {
	const many, each = 20, 10_000
	tokens := make([]queue.Token, each)
	for i := range tokens {
		tokens[i] = queue.Token{Seq: queue.SeqNo(i + 1), Nonce: 1}
	}
	for name, ask := range map[string]func(r *rig, id ID, answer func(err error)) error{
		"settle": func(r *rig, id ID, answer func(error)) error {
			return r.s.Settle(&Settle{ID: id, Tokens: tokens, Done: func(errs []error) {
				if len(errs) != each {
					t.Fatalf("%d of %d are refused", len(errs), each)
				}
				answer(errs[each-1])
			}})
		},
		"renew": func(r *rig, id ID, answer func(error)) error {
			return Post(r.s, Renew{Queue: QueueID{Entity: id}, Tokens: tokens}, func(_ []time.Time, err error) { answer(err) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			id := r.define("q", minute)
			answers := 0
			for range many {
				if err := ask(r, id, func(err error) {
					if answers++; err == nil {
						t.Error("a lock that is none is settled")
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			stored := false
			if err := r.s.Send(&Send{Bodies: []*message.Message{text("x")}, Copies: []Copy{{ID: id}},
				Done: func(_ []queue.SeqNo, err error) { stored = err == nil }}); err != nil {
				t.Fatal(err)
			}
			r.step()
			r.sync()
			r.step()
			if !stored || answers > 2 {
				t.Errorf("after two steps: the message is stored: %t, %d of %d operations are answered", stored, answers, many)
			}
			for range 2 * many * each / 1000 {
				r.step()
				r.sync()
			}
			if answers != many {
				t.Errorf("%d of %d operations are answered", answers, many)
			}
		})
	}
}
