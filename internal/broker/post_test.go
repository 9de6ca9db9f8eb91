// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A caller that sends and settles may use its slices for the next call at once, and
// batches of all sizes that follow each other do not meet in what is used again.
func TestSendAndSettleKeepNoSlices(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	s, err := r.OpenSender("q", SenderOptions{})
	if err != nil {
		t.Fatalf("open a sender: %v", err)
	}
	var want []string
	var sent sync.WaitGroup
	batch := make([]*message.Message, 0, 3)
	for i := range 60 {
		batch = batch[:0]
		for range i%3 + 1 {
			want = append(want, fmt.Sprint(len(want)))
			batch = append(batch, msg(want[len(want)-1]))
		}
		sent.Add(1)
		s.Send(batch, func(err error) {
			if err != nil {
				t.Errorf("send: %v", err)
			}
			sent.Done()
		})
		clear(batch)
	}
	sent.Wait()

	rec, k := r.receive("q", uint64(len(want)), ReceiverOptions{})
	defer rec.Close()
	var got []string
	var settled sync.WaitGroup
	tokens := make([]queue.Token, 1)
	for range want {
		d := <-k.ds
		got = append(got, body(t, d))
		tokens[0] = d.Token
		settled.Add(1)
		rec.Settle(tokens, Outcome{Disposition: Complete}, func(errs []error) {
			if err := errors.Join(errs...); err != nil {
				t.Errorf("settle: %v", err)
			}
			settled.Done()
		})
		tokens[0] = queue.Token{}
	}
	settled.Wait()
	wantBodies(t, "received", got, want...)
	wantBodies(t, "left over", r.take("q"))
}
