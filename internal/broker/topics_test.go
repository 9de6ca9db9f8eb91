// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// B2: while subscriptions are deleted, publishers are not refused, and the other
// subscriptions get everything that was accepted.
func TestDeletedSubscriptionTakesNothingFromTheOthers(t *testing.T) {
	for name, top := range map[string]entity.Topic{
		"plain":         {Name: "t"},
		"deduplicating": {Name: "t", RequiresDuplicateDetection: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.topic(top, entity.Subscription{Name: "stays"})
			const subs, messages = 40, 3000
			for i := range subs {
				if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: fmt.Sprint("goes", i)}); err != nil {
					t.Fatal(err)
				}
			}
			s, err := r.OpenSender("t", SenderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var deletes sync.WaitGroup
			deletes.Go(func() {
				for i := range subs {
					if err := r.DeleteSubscription(t.Context(), "t", fmt.Sprint("goes", i)); err != nil {
						t.Errorf("delete a subscription: %v", err)
					}
				}
			})
			answers := make(chan error, messages)
			for i := range messages {
				s.Send([]*message.Message{msg(fmt.Sprint(i))}, func(err error) { answers <- err })
			}
			refused := 0
			for range messages {
				if err := <-answers; err != nil {
					refused++
					t.Logf("refused: %v", err)
				}
			}
			deletes.Wait()
			if refused > 0 {
				t.Errorf("%d messages were refused", refused)
			}
			rec, k := r.receive("t/Subscriptions/stays", 0, ReceiverOptions{})
			defer rec.Close()
			for i := range uint64(messages - refused) {
				if dead := r.counts("t").TransferDead; dead > 0 {
					t.Fatalf("%d messages became transfer dead letters of the topic", dead)
				}
				rec.Allow(i + 1)
				r.settle(rec, <-k.ds, Outcome{Verdict: Complete})
			}
		})
	}
}

// B2: a publisher that chose the subscriptions just before one of them was deleted.
func TestSubscriptionDeletedBetweenRoutingAndStoring(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "goes"}, entity.Subscription{Name: "stays"})
	topic := r.node("t")
	chosen := topic.routes.Load()
	if err := r.DeleteSubscription(t.Context(), "t", "goes"); err != nil {
		t.Fatal(err)
	}
	topic.routes.Store(chosen)
	r.send("t", msg("a"), msg("b"))
	wantBodies(t, "the other subscription", r.take("t/Subscriptions/stays"), "a", "b")
}

// B2: a topic that is gone accepts nothing, also from who has opened it before, and
// also if nothing would be stored.
func TestDeletedTopicAcceptsNothing(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{sql("r", "x = '1'")}})
	s, err := r.OpenSender("t", SenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message.Message{msg("matches", "x", "1"), msg("matches nothing")} {
		done := make(chan error, 1)
		s.Send([]*message.Message{m}, func(err error) { done <- err })
		if err := <-done; !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want %v", err, ErrNotFound)
		}
	}
}
