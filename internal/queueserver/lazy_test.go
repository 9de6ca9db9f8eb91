// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// silently completes without waiting for an answer.
func (k *taker) silently(ds ...Delivery) {
	k.r.t.Helper()
	var tokens []queue.Token
	for _, d := range ds {
		tokens = append(tokens, d.Token)
	}
	if err := k.r.s.Settle(&Settle{ID: k.c.queue.entity.ID, SubQueue: k.c.queue.part, Tokens: tokens}); err != nil {
		k.r.t.Fatal(err)
	}
}

// holding returns a queue whose only message a consumer holds.
func holding(t *testing.T) (*rig, ID, *taker) {
	t.Helper()
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.send(id, 4, "one")
	r.settle()
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.settle()
	return r, id, k
}

// records is how many records the journal has been given.
func (r *rig) records() uint64 {
	r.t.Helper()
	if err := r.wal.Commit(); err != nil {
		r.t.Fatal(err)
	}
	return r.wal.Stats().Records
}

// waiting is how many messages a queue has.
func (r *rig) waiting(id ID) int64 {
	r.t.Helper()
	hq, err := r.s.hostedQueue(id, Main)
	if err != nil {
		r.t.Fatal(err)
	}
	c := hq.q.Counts()
	return c.Ready + c.Locked
}

func TestSettlementThatNobodyWaitsForIsAppendedInTime(t *testing.T) {
	r, id, k := holding(t)
	before := r.records()

	k.silently(k.got...)
	r.step()
	if got := r.records(); got != before {
		t.Fatalf("at once: %d records appended, want none", got-before)
	}
	at, ok := r.s.NextDeadline()
	if !ok || at.Sub(r.now) > maxCommitDelay {
		t.Fatalf("next deadline %v, %v, want one within %v", at, ok, maxCommitDelay)
	}
	r.now = at
	r.step()
	if got := r.records(); got != before+1 {
		t.Fatalf("at the deadline: %d records appended, want 1", got-before)
	}
	r.settle()
	r.crash(1)
	if n := r.waiting(id); n != 0 {
		t.Fatalf("after a crash: %d messages, want none", n)
	}
}

func TestSettlementThatNobodyWaitsForGoesWithWhatSomebodyDoes(t *testing.T) {
	r, id, k := holding(t)

	k.silently(k.got...)
	r.step()
	acked := r.send(id, 4, "two")
	r.settle()
	if !*acked {
		t.Fatal("the sender has no answer")
	}
	r.crash(1)
	if n := r.waiting(id); n != 1 {
		t.Fatalf("after a crash: %d messages, want the second alone", n)
	}
}

// A consumer becomes free, and settles what it had, while an urgent message is on its
// way to the disk. The message depends on its own arrival: the settlement behind it
// neither holds it up nor costs a sync.
func TestFreshMessageWaitsForItsOwnArrivalOnly(t *testing.T) {
	r, id, k := holding(t)
	got := k.got

	r.send(id, 9, "urgent")
	r.step() // appended, not synced
	k.silently(got...)
	k.c.SetDeliveryLimit(2)
	r.step()
	if n := len(k.got); n != 1 {
		t.Fatalf("%d deliveries before the urgent message is durable, want 1", n)
	}
	before := r.wal.Stats().Records
	if err := r.wal.Commit(); err != nil {
		t.Fatal(err)
	}
	r.step()
	if n := len(k.got); n != 2 {
		t.Fatalf("%d deliveries when it is durable, want 2", n)
	}
	if n := r.records(); n != before+2 { // a body and an arrival
		t.Fatalf("%d records appended, want 2: the settlement can wait", n-before)
	}
}
