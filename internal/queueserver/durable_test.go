// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A session may exist by one message alone. Its name is observable when that message is
// durable, as the message is.
func TestSessionIsGrantedOnlyWhenDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("sessions", queue.Config{LockFor: time.Minute, Sessions: true})
	granted := ""
	r.accept(&taker{r: r}, Attachment{ID: id}, nil, func(l queue.SessionLock, _ time.Time, err error) {
		if err != nil {
			t.Error(err)
		}
		granted = l.ID
	})
	r.settle()
	r.sendToSession(id, "s")
	r.step()
	if granted != "" {
		t.Fatal("granted before the sync")
	}
	r.settle()
	if granted != "s" {
		t.Fatalf("after the sync session %q was granted, want s", granted)
	}
}

// A consumer learns that its queue was dropped when a crash cannot bring the queue back.
func TestDropIsNotifiedOnlyWhenDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	k := r.attach(id, Main, queue.TakeOptions{})
	r.settle()
	dropped := false
	if err := r.s.Drop([]ID{id}, func(err error) { dropped = err == nil }); err != nil {
		t.Fatal(err)
	}
	r.step()
	if dropped || k.ended != nil {
		t.Fatalf("before the sync: dropped %v, the consumer ended with %v", dropped, k.ended)
	}
	r.settle()
	if !dropped || !errors.Is(k.ended, ErrNoEntity) {
		t.Fatalf("after the sync: dropped %v, the consumer ended with %v", dropped, k.ended)
	}
}

// A consumer that is granted a session while the shard stops is refused, or learns of its
// end. A receiver that is told neither waits until it is closed.
func TestSessionIsRefusedIfTheShardStopsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("sessions", queue.Config{LockFor: time.Minute, Sessions: true})
		var answers []error
		k := &taker{r: r}
		r.accept(k, Attachment{ID: id}, nil, func(_ queue.SessionLock, _ time.Time, err error) { answers = append(answers, err) })
		r.sendToSession(id, "s")
		r.step() // granted, and not durable
		stop := make(chan error, 1)
		go func() { stop <- r.s.manual().Drain(t.Context()) }() // ends when the journal has caught up
		synctest.Wait()
		r.sync()
		if err := <-stop; err != nil {
			t.Fatal(err)
		}
		r.s.manual().Stop(ErrStopped)
		if len(answers) != 1 || !errors.Is(answers[0], ErrStopped) && !errors.Is(k.ended, ErrStopped) {
			t.Errorf("answered %v, and ended with %v; want one answer, and %v", answers, k.ended, ErrStopped)
		}
	})
}

// sendToSession posts a message of a session.
func (r *rig) sendToSession(id ID, session string) {
	r.t.Helper()
	err := r.s.Send(&Send{
		Bodies: []*message.Message{text("a")},
		Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: session, InSession: true}}},
		Done:   func([]queue.SeqNo, error) {},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A durable lock whose message nobody has got is released by a record. The next receiver gets
// the message when that is durable: else a crash would leave it locked, and nobody has the token.
func TestReturnedDurableLockIsReleasedBeforeTheNextDelivery(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.sendAll(id, "a")
	first := r.attach(id, Main, queue.TakeOptions{DurableLock: true})
	first.c.SetDeliveryLimit(1)
	r.step()
	r.sync() // the lock is durable, and not handed over yet
	if err := first.c.Detach(); err != nil {
		t.Fatal(err)
	}
	next := r.attach(id, Main, queue.TakeOptions{})
	next.c.SetDeliveryLimit(1)
	r.step()
	if len(next.got) != 0 {
		t.Error("delivered before the end of the lock was durable")
	}
	r.settle()
	if got := next.bodies(); len(first.got) != 0 || len(got) != 1 {
		t.Fatalf("after the sync %q was delivered, want the one message", got)
	}
}
