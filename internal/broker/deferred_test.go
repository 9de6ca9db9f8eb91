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
	"github.com/triagemq/triagemq/internal/queue"
)

// Of several deferred messages that are asked for together one has expired: that one is
// dropped or a dead letter, and the others stay deferred and unlocked, in a session and
// without, also after a restart.
func TestOneOfSeveralDeferredMessagesHasExpired(t *testing.T) {
	for what, c := range map[string]struct {
		q    entity.Queue
		mode Mode
	}{
		"dropped":         {entity.Queue{Name: "q"}, PeekLock},
		"dead":            {entity.Queue{Name: "q", DeadLetteringOnMessageExpiration: true}, PeekLock},
		"and deleting":    {entity.Queue{Name: "q", DeadLetteringOnMessageExpiration: true}, ReceiveAndDelete},
		"in a session":    {entity.Queue{Name: "q", RequiresSession: true, DeadLetteringOnMessageExpiration: true}, PeekLock},
		"dropped from it": {entity.Queue{Name: "q", RequiresSession: true}, ReceiveAndDelete},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				c.q.LockDuration = entity.Duration(5 * time.Minute)
				r.queue(c.q)
				draft := message.Draft{Body: []byte("m")}
				var options ReceiverOptions
				if c.q.RequiresSession {
					options.Session, draft.SessionID = new("s"), "s"
				}
				r.send("q", draft.Message(), draft.Message())
				draft.TTL = time.Minute
				r.send("q", draft.Message())
				rec, k := r.receive("q", 3, options)
				for range 3 {
					r.settle(rec, <-k.ds, Outcome{Disposition: Defer})
				}
				time.Sleep(2 * time.Minute)
				o := Deferred{Mode: c.mode, Session: rec.SessionLock()}
				if ds, err := r.ReceiveDeferred(t.Context(), "q", []queue.SeqNo{1, 3, 2}, o); !errors.Is(err, ErrMessageNotFound) {
					t.Fatalf("%d messages, %v, want %v", len(ds), err, ErrMessageNotFound)
				}
				synctest.Wait()
				dead := int64(0)
				if c.q.DeadLetteringOnMessageExpiration {
					dead = 1
				}
				want := func(when string) {
					t.Helper()
					got, err := r.Runtime(t.Context(), "q")
					if err != nil || got.Deferred != 2 || got.Locked != 0 || got.Active != 0 || got.Dead != dead {
						t.Errorf("%s: %+v, %v, want 2 deferred and %d dead", when, got.Counts, err, dead)
					}
				}
				want("asked for")
				r = r.restart()
				want("after a restart")
				rec, _ = r.receive("q", 0, options)
				o.Session = rec.SessionLock()
				ds, err := r.ReceiveDeferred(t.Context(), "q", []queue.SeqNo{1, 2}, o)
				if err != nil || len(ds) != 2 || ds[0].Failures != 1 {
					t.Errorf("the others: %+v, %v", ds, err)
				}
			})
		})
	}
}

// Deferring for the last time makes a dead letter of the message as it was changed, in a
// session and without, and nothing is left of it where it was.
func TestDeferredOnceTooOftenWithProperties(t *testing.T) {
	for _, session := range []string{"", "s"} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "q", MaxDeliveryCount: 1, RequiresSession: session != ""})
			draft := message.Draft{Body: []byte("m"), SessionID: session}
			var options ReceiverOptions
			if session != "" {
				options.Session = &session
			}
			r.send("q", draft.Message())
			rec, k := r.receive("q", 1, options)
			r.settle(rec, <-k.ds, Outcome{Disposition: Defer, Properties: []message.Change{{Name: "why", Value: codec.String("busy")}}})
			rec.Close()
			for _, when := range []string{"at once", "after a restart"} {
				synctest.Wait()
				got, err := r.Runtime(t.Context(), "q")
				if err != nil || got.Dead != 1 || got.Total() != 1 {
					t.Errorf("%s: %+v, %v, want one dead letter", when, got.Counts, err)
				}
				ds, err := r.Peek(t.Context(), "q/$DeadLetterQueue", 0, 10, nil)
				if err != nil || len(ds) != 1 {
					t.Fatalf("%s: %d dead letters, %v", when, len(ds), err)
				}
				m, err := ds[0].Message()
				if err != nil {
					t.Fatal(err)
				}
				if v, ok := m.Property("why"); !ok || v != codec.String("busy") {
					t.Errorf("%s: why is %v, %t", when, v, ok)
				}
				r = r.restart()
			}
		})
	}
}
