// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// withoutBodies is a journal that has lost all bodies, as one that was repaired may have.
type withoutBodies struct {
	journal.Journal
	reads int
	tired func() // called when it was read too often
}

func (w *withoutBodies) Read(_ context.Context, reads []journal.Read) {
	for i := range reads {
		reads[i].Err = journal.ErrFreed
	}
	if w.reads++; w.reads == 100 {
		w.tired()
	}
}

// A state that the journal has lost is an error. It is not looked for over and over.
func TestSessionStateThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("sessions", queue.Config{LockFor: time.Minute, Sessions: true})
		var lock queue.SessionLock
		name := "s"
		r.accept(&taker{r: r}, Attachment{ID: id}, &name, func(l queue.SessionLock, _ time.Time, err error) { lock = l })
		r.settle()
		set := SetSessionState{Queue: QueueID{Entity: id}, Lock: lock, State: []byte("state")}
		if err := Post(r.s, set, func(_ struct{}, err error) {
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
		r.settle()

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.s.manual().SetJournal(&withoutBodies{Journal: r.s.manual().Journal(), tired: cancel})
		done := make(chan error, 1)
		go func() { // ends with the read, which the test waits for
			_, err := r.s.SessionState(ctx, QueueID{Entity: id}, lock)
			done <- err
		}()
		for {
			select {
			case err := <-done:
				if !errors.Is(err, journal.ErrFreed) || ctx.Err() != nil {
					t.Errorf("got %v, want %v at once", err, journal.ErrFreed)
				}
				return
			case <-r.s.manual().Wake():
				r.step()
			}
		}
	})
}
