// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// A4: however long the names of what is in a shard, a snapshot of it is made of
// groups that the journal takes. (The block of a rig is 64 KiB.)
func TestSnapshotOfLongNamesFitsIntoGroups(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 64 << 10, SnapshotStep: 1 << 20})
	id := r.define("q", queue.Config{LockFor: minute.LockFor, Sessions: true})
	for i := range 60 {
		session := fmt.Sprint(i, strings.Repeat("s", 5000))
		err := r.s.Send(&Send{
			Bodies: []*message.Message{text("x")},
			Copies: []Copy{{ID: id, Arrival: queue.Arrival{Session: session, InSession: true, Key: session}}},
			Done: func(_ []queue.SeqNo, err error) {
				if err != nil {
					t.Errorf("send %d: %v", i, err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		r.settle()
	}
	for range 80 { // twice the size of a snapshot is written: there is one
		r.send(r.define(fmt.Sprint("other", r.s.nextID), minute), 4, strings.Repeat("x", 30_000))
		r.settle()
	}
	if r.s.snapshot.number == 0 {
		t.Fatal("no snapshot was taken; the test shows nothing")
	}
	r.crash(1)
	var ready int64
	r.s.Look(func(tx *Tx) {
		q, err := tx.Inspect(id, Main)
		if err != nil {
			t.Fatal(err)
		}
		ready = int64(q.Counts().Ready)
	})
	if ready != 60 {
		t.Fatalf("%d messages after a crash, want 60", ready)
	}
}

// A4: a send whose records do not fit into one group is refused before anything has
// changed.
func TestSendThatFitsNoGroupIsRefused(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", minute)
	copies := make([]Copy, 2000)
	for i := range copies {
		copies[i] = Copy{ID: id}
	}
	var got error
	if err := r.s.Send(&Send{
		Bodies: []*message.Message{text("x")}, Copies: copies,
		Done: func(_ []queue.SeqNo, err error) { got = err },
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	if !errors.Is(got, ErrTooLarge) {
		t.Fatalf("2,000 copies: %v, want %v", got, ErrTooLarge)
	}
	r.send(id, 4, "after")
	r.settle()
	k := r.attach(id, Main, queue.Want{})
	k.c.Allow(10)
	r.settle()
	if got := k.bodies(); len(got) != 1 || got[0] != "after" {
		t.Fatalf("got %q, want the message sent afterwards", got)
	}
}
