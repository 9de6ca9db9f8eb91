// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// No sink and no consumer is kept when its attachment has failed or ended, and an
// operation that names it does nothing.
func TestConsumerIDsThatHaveEnded(t *testing.T) {
	r := newRig(t, Options{})
	cfg := minute
	cfg.Sessions = true
	plain, sessions := r.define("plain", minute), r.define("sessions", cfg)
	k := r.attach(plain, Main, queue.TakeOptions{})
	ended := []ConsumerID{0, k.c.id, 1 << 40}
	k.c.Detach()

	refused := make(map[ConsumerID]error)
	refuse := func(a Attachment, accept bool, name *string) ConsumerID {
		a.Consumer = r.s.AddSink(&taker{r: r})
		var err error
		if accept {
			err = r.s.AcceptSession(a, name, func(_ queue.SessionLock, _ time.Time, err error) { refused[a.Consumer] = err })
		} else {
			err = r.s.Attach(a, func(err error) { refused[a.Consumer] = err })
		}
		if err != nil {
			t.Fatal(err)
		}
		ended = append(ended, a.Consumer)
		return a.Consumer
	}
	none := refuse(Attachment{ID: 99}, false, nil)
	noQueue := refuse(Attachment{ID: 99}, true, nil)
	canceled := refuse(Attachment{ID: sessions}, true, nil)
	if err := r.s.CancelAccept(canceled); err != nil {
		t.Fatal(err)
	}
	r.settle()
	for id, want := range map[ConsumerID]error{none: ErrNoEntity, noQueue: ErrNoEntity, canceled: ErrAcceptCanceled} {
		if !errors.Is(refused[id], want) {
			t.Errorf("consumer %d: %v, want %v", id, refused[id], want)
		}
	}
	for _, id := range ended {
		for _, err := range []error{r.s.SetDeliveryLimit(id, 5), r.s.Drain(id), r.s.Detach(id), r.s.DeclineRecall(id, nil), r.s.CancelAccept(id)} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	r.settle()
	if n := len(r.s.consumers) + len(r.s.sessionWaiters) + len(r.s.sinks.added); n != 0 {
		t.Errorf("%d consumers, waiters and sinks are left", n)
	}
}

// A limit that is on its way can be changed, so that a peer that says again and again how
// much it takes does not fill the mailbox.
func TestDeliveryLimitChangesOnItsWay(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.sendMany(id, 10)
	k := r.attach(id, Main, queue.TakeOptions{})
	limit, err := r.s.PostDeliveryLimit(k.c.id, 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, total := range []uint64{1, 5, 3} {
		if !limit.Change(total) {
			t.Fatalf("the limit cannot become %d before it is applied", total)
		}
	}
	r.settle()
	if len(k.got) != 3 {
		t.Errorf("%d messages, want 3", len(k.got))
	}
	if limit.Change(10) {
		t.Error("the limit was changed after it was applied")
	}
	r.settle()
	if len(k.got) != 3 {
		t.Errorf("%d messages after that, want 3", len(k.got))
	}
}
