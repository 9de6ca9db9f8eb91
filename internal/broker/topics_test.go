// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
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
			const subs, messages = 20, 1000
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
			for r.counts("t").Active > 0 {
				runtime.Gosched() // the topic has yet to publish some
			}
			if c := r.counts("t"); c.Total() != 0 {
				t.Errorf("left in the topic: %+v, want nothing", c)
			}
			if c := r.counts("t/Subscriptions/stays"); c.Active != int64(messages-refused) {
				t.Errorf("the subscription that stays has %d messages, want %d", c.Active, messages-refused)
			}
		})
	}
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

// strand puts messages among the dead letters of an entity.
func (r *rig) strand(path string, part queueserver.SubQueue, bodies ...string) {
	r.t.Helper()
	n := r.Entity(path)
	for _, b := range bodies {
		done := make(chan error, 1)
		err := n.Shard.Send(&queueserver.Send{
			Bodies: []*message.Message{msg(b)},
			Copies: []queueserver.Copy{{ID: n.ID, SubQueue: part, Arrival: queue.Arrival{Level: queue.DefaultLevel}}},
			Done:   func(_ []queue.SeqNo, err error) { done <- err },
		})
		if err == nil {
			err = <-done
		}
		if err != nil {
			r.t.Fatalf("strand %q: %v", b, err)
		}
	}
}

// B3: the dead letters of a topic are those of a queue in all that can be done with
// them.
func TestDeadLettersOfATopic(t *testing.T) {
	for sub, part := range map[entity.SubQueue]queueserver.SubQueue{
		entity.DeadLetter: queueserver.DeadLetter, entity.TransferDeadLetter: queueserver.TransferDeadLetter,
	} {
		t.Run(sub.String(), func(t *testing.T) {
			r := start(t)
			r.topic(entity.Topic{Name: "t", RequiresDuplicateDetection: true}, entity.Subscription{Name: "s"})
			r.queue(entity.Queue{Name: "elsewhere"})
			addr := "t/" + sub.String()
			ctx := t.Context()

			r.strand("t", part, "a", "b", "c", "d", "e")
			rec, k := r.receive(addr, 2, ReceiverOptions{})
			r.settle(rec, <-k.ds, Outcome{Disposition: Complete})
			d := <-k.ds
			if _, err := r.Renew(ctx, addr, []queue.Token{d.Token}); err != nil {
				t.Errorf("renew: %v", err)
			}
			if err := r.Settle(ctx, addr, []queue.Token{d.Token}, Outcome{Disposition: Defer}); err != nil {
				t.Errorf("settle: %v", err)
			}
			rec.Close()
			if ds, err := r.ReceiveDeferred(ctx, addr, []queue.SeqNo{d.Seq}, Deferred{Mode: ReceiveAndDelete}); err != nil || len(ds) != 1 {
				t.Errorf("receive a deferred one: %d, %v", len(ds), err)
			}
			if ds, err := r.Peek(ctx, addr, 0, 10, nil); err != nil || len(ds) != 3 {
				t.Errorf("peek: %d, %v, want 3", len(ds), err)
			}
			if err := r.Remove(ctx, addr, []queue.SeqNo{5}); err != nil {
				t.Errorf("remove: %v", err)
			}
			if got, err := r.Redrive(ctx, addr, Redrive{To: "elsewhere", Max: 1}); err != nil || got.Moved != 1 {
				t.Errorf("redrive elsewhere: %+v, %v", got, err)
			}
			wantBodies(t, "elsewhere", r.take("elsewhere"), "c")
			if got, err := r.Redrive(ctx, addr, Redrive{}); err != nil || got.Moved != 1 {
				t.Errorf("redrive: %+v, %v", got, err)
			}
			_, published := r.receive("t/Subscriptions/s", 1, ReceiverOptions{})
			if got := body(t, <-published.ds); got != "d" {
				t.Errorf("the topic published %q, want d", got)
			}
			r.strand("t", part, "f")
			if n, err := r.Purge(ctx, addr); err != nil || n != 1 {
				t.Errorf("purge: %d, %v, want 1", n, err)
			}
		})
	}
}

// B3: by its name alone, too, as with queues; and the topic's own messages stay its
// own.
func TestRedriveByTheNameOfATopic(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	r.strand("t", queueserver.DeadLetter, "a")
	if got, err := r.Redrive(t.Context(), "t", Redrive{}); err != nil || got.Moved != 1 {
		t.Errorf("redrive: %+v, %v", got, err)
	}
	_, k := r.receive("t/Subscriptions/s", 1, ReceiverOptions{})
	if got := body(t, <-k.ds); got != "a" {
		t.Errorf("the topic published %q, want a", got)
	}
	for what, err := range map[string]error{
		"receive from a topic":  func() error { _, err := r.OpenReceiver(t.Context(), "t", ReceiverOptions{Sink: newSink()}); return err }(),
		"a policy for a topic":  func() error { _, err := r.SetPolicy(t.Context(), "t/$DeadLetterQueue", []byte(`{}`)); return err }(),
		"the policy of a topic": func() error { _, err := r.Broker.Policy("t/$DeadLetterQueue"); return err }(),
		"purge a topic's own":   func() error { _, err := r.Purge(t.Context(), "t"); return err }(),
		"a session of a topic's": func() error {
			_, err := r.OpenReceiver(t.Context(), "t/$DeadLetterQueue", ReceiverOptions{Sink: newSink(), NextSession: true})
			return err
		}(),
	} {
		if !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v, want %v", what, err, ErrNotAllowed)
		}
	}
}

// A repair has dropped the definition of a topic. The rest of the broker starts, and the
// subscriptions are back with their messages when the topic is created again.
func TestSubscriptionWhoseTopicIsLost(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "a"}, entity.Subscription{Name: "b", Rules: []entity.Rule{sql("r", "x = 'b'")}})
	r.send("t", msg("both", "x", "b"), msg("one", "x", "a"))
	r.send("q", msg("of a queue"))
	r.stop()
	r.damage(`{"kind":"topic"`)
	if done, err := repair.Repair(r.disk, repair.DropDamaged); err != nil || len(done.Dropped) != 1 {
		t.Fatalf("repair: %+v, %v", done, err)
	}
	r = r.restart()
	wantBodies(t, "the queue", r.take("q"), "of a queue")
	if _, err := r.Resolve("t/Subscriptions/a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a subscription without a topic: %v, want %v", err, ErrNotFound)
	}
	r = r.restart() // it is left out again, and not lost
	r.topic(entity.Topic{Name: "T"})
	wantBodies(t, "a subscription", r.take("T/Subscriptions/a"), "both", "one")
	r.send("t", msg("new", "x", "b"), msg("newer", "x", "c"))
	r = r.restart()
	wantBodies(t, "a subscription after a restart", r.take("t/Subscriptions/a"), "new", "newer")
	wantBodies(t, "one with a rule", r.take("t/Subscriptions/b"), "both", "new")
	if err := r.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	r = r.restart()
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "a"})
	wantBodies(t, "a subscription of another topic", r.take("t/Subscriptions/a"))
}
