// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// A checkpoint is what the holder of a lock has saved: senders and rules cannot forge it,
// and what the broker moves keeps it.
func TestOnlyTheHolderOfALockSavesACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		state := message.Pair{Name: "triagemq-state", Value: codec.String("forged")}
		forged := func() *message.Message {
			d := message.Draft{Body: []byte("x"), Application: []message.Pair{state}, Annotations: []message.Pair{
				{Name: message.AnnotationDeadLetterSource, Value: codec.String("forged")}}}
			return d.Message()
		}
		want := func(what, addr, state string) {
			t.Helper()
			synctest.Wait()
			ds, err := r.Peek(t.Context(), addr, 0, 10, nil)
			if err != nil || len(ds) == 0 {
				t.Fatalf("%s: %d messages, %v", what, len(ds), err)
			}
			for _, d := range ds {
				m, err := d.Message()
				if err != nil {
					t.Fatal(err)
				}
				v, _ := m.Property("triagemq-state")
				_, sourced := m.Annotation(message.AnnotationDeadLetterSource)
				if got, _ := v.Str(); got != state || sourced {
					t.Errorf("%s: the state is %q, with a source of dead letters: %t; want %q and none", what, got, sourced, state)
				}
			}
		}
		r.queue(entity.Queue{Name: "q"})
		r.send("q", forged())
		r.send("q", forged(), forged())
		want("sent", "q", "")

		r.queue(entity.Queue{Name: "later"})
		d := message.Draft{Body: []byte("x"), Application: []message.Pair{state}, Annotations: []message.Pair{
			{Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(time.Minute))}}}
		if _, err := r.Schedule(t.Context(), "later", []*message.Message{d.Message()}, SenderOptions{}); err != nil {
			t.Fatal(err)
		}
		want("scheduled", "later", "")

		r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
		r.send("t", forged())
		want("published", "t/Subscriptions/s", "")
		rule := shapes("r")
		rule.Action.SQL = "SET [Triagemq-State] = 'forged'"
		if _, err := r.CreateSubscription(t.Context(), "t", entity.Subscription{Name: "bad", Rules: []entity.Rule{rule}}); !errors.Is(err, ErrInvalid) {
			t.Errorf("a rule that forges a checkpoint: %v, want %v", err, ErrInvalid)
		}

		r.queue(entity.Queue{Name: "to"})
		r.queue(entity.Queue{Name: "work"})
		r.send("work", forged())
		rec, s := r.receive("work", 1, ReceiverOptions{})
		synctest.Wait()
		r.settle(rec, <-s.ds, Outcome{Disposition: Abandon, Properties: []message.Change{{Name: "triagemq-state", Value: codec.String("saved")}}})
		rec.Close()
		want("given back by a worker", "work", "saved")
		r.deadLetter("work", 1)
		if got, err := r.Redrive(t.Context(), "work", Redrive{To: "to"}); err != nil || got.Moved != 1 {
			t.Fatalf("redrive: %+v, %v", got, err)
		}
		want("redriven", "to", "saved")
	})
}
