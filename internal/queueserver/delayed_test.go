// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// busy is a journal that refuses senders for the moment.
type busy struct {
	journal.Journal
	is bool
}

func (b *busy) Append(c journal.Claim, g *journal.Group) error {
	if b.is && g.Use == journal.Ordinary {
		return journal.ErrBusy
	}
	return b.Journal.Append(c, g)
}

// A12: a send that comes while the journal has no space for it is not refused. It
// waits, and so do those behind it, in their order; everything else goes on.
func TestSendsWaitWhileTheJournalIsBusy(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Hour})
	r.send(id, 0, "first")
	r.settle()
	b := &busy{Journal: r.s.manual().Journal(), is: true}
	r.s.manual().SetJournal(b)

	var acked []*bool
	for i := range 600 { // more than one step takes
		acked = append(acked, r.send(id, 0, fmt.Sprint(i)))
	}
	r.settle()
	if *acked[0] {
		t.Fatal("the journal is busy, and a message was accepted")
	}
	if at, ok := r.s.NextDeadline(); !ok || at.After(r.now.Add(delayFor)) {
		t.Errorf("it is tried again at %v, %v; it is %v", at, ok, r.now)
	}
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	if got := k.bodies(); !slices.Equal(got, []string{"first"}) {
		t.Errorf("meanwhile received %q", got)
	}

	b.is = false
	acked = append(acked, r.send(id, 0, "600"))
	r.settle()
	for i, ok := range acked {
		if !*ok {
			t.Fatalf("message %d was not accepted", i)
		}
	}
	k.c.SetDeliveryLimit(700)
	r.settle()
	for i, got := range k.bodies()[1:] {
		if got != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got)
		}
	}
	if got := len(k.bodies()); got != 602 {
		t.Errorf("%d messages, want 602", got)
	}
	if _, ok := r.s.NextDeadline(); ok && r.s.view().Delayed > 0 {
		t.Error("something is still delayed")
	}
}

// What waits for the journal is answered when the shard ends.
func TestStopAnswersSendsThatWait(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Hour})
	r.s.manual().SetJournal(&busy{Journal: r.s.manual().Journal(), is: true})
	var got error
	err := r.s.Send(&Send{
		Bodies: []*message.Message{text("a")},
		Copies: []Copy{{ID: id}},
		Done:   func(_ []queue.SeqNo, err error) { got = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.s.manual().Stop(ErrStopped)
	if !errors.Is(got, ErrStopped) {
		t.Errorf("answered %v, want %v", got, ErrStopped)
	}
}
