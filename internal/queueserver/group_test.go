// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
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
	if r.s.Snapshots() == 0 {
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
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(10)
	r.settle()
	if got := k.bodies(); len(got) != 1 || got[0] != "after" {
		t.Fatalf("got %q, want the message sent afterwards", got)
	}
}

// However many messages one operation, or one step, is about, what it writes is made
// of groups that the journal takes. Small records count with what the journal needs
// for each of them.
func TestStepsAboutManyMessagesFitIntoGroups(t *testing.T) {
	const many = 3000
	cfg := queue.Config{LockFor: time.Minute, TTL: time.Hour, DeadLetterExpired: true}
	takeAll := func(r *rig, id ID, want queue.TakeOptions) *taker {
		k := r.attach(id, Main, want)
		k.c.SetDeliveryLimit(many)
		r.settle()
		return k
	}
	for _, tt := range []struct {
		name        string
		do          func(r *rig, id ID)
		ready, dead int64
	}{
		{name: "complete", do: func(r *rig, id ID) {
			k := takeAll(r, id, queue.TakeOptions{})
			k.settle(Complete, k.got...)
		}},
		{name: "abandon", ready: many, do: func(r *rig, id ID) {
			k := takeAll(r, id, queue.TakeOptions{})
			k.c.Detach()
			k.settle(Abandon, k.got...)
		}},
		{name: "reject", dead: many, do: func(r *rig, id ID) {
			k := takeAll(r, id, queue.TakeOptions{})
			k.settle(Reject, k.got...)
		}},
		{name: "reject with properties", dead: many, do: func(r *rig, id ID) {
			k := takeAll(r, id, queue.TakeOptions{})
			k.settleWith(Reject, []message.Change{{Name: "note", Value: codec.Int(1)}})
		}},
		{name: "expire", dead: many, do: func(r *rig, _ ID) {
			r.now = r.now.Add(2 * time.Hour)
		}},
		{name: "take for good", do: func(r *rig, id ID) {
			takeAll(r, id, queue.TakeOptions{ReceiveAndDelete: true})
		}},
		{name: "take for good and leave", ready: many, do: func(r *rig, id ID) {
			k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
			k.c.SetDeliveryLimit(many)
			r.step()
			k.c.Detach()
		}},
		{name: "return", ready: many, do: func(r *rig, id ID) {
			k := takeAll(r, id, queue.TakeOptions{ReceiveAndDelete: true})
			k.c.Detach()
			if err := Return(k.got); err != nil {
				r.t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, Options{SnapshotAfter: 1 << 30})
			id := r.define("q", cfg)
			r.sendMany(id, many)
			tt.do(r, id)
			for r.settle(); r.s.tx.Durable() < r.s.view().Tail; {
				r.settle()
			}
			r.crash(1)
			r.check()
			r.s.Look(func(tx *Tx) {
				q, _ := tx.Inspect(id, Main)
				d, _ := tx.Inspect(id, DeadLetter)
				if ready, dead := q.Counts().Ready, d.Counts().Ready; ready != tt.ready || dead != tt.dead {
					t.Errorf("%d messages and %d dead letters, want %d and %d", ready, dead, tt.ready, tt.dead)
				}
			})
		})
	}
}

// Many consumers, each of whom finds nothing but messages that have expired, do not
// clear away all of them in one step, and are served when that is done.
func TestManyConsumersOfExpiredMessages(t *testing.T) {
	const many, consumers = 30_000, 300
	r := newRig(t, Options{SnapshotAfter: 1 << 30})
	id := r.define("q", queue.Config{LockFor: time.Minute, TTL: time.Hour})
	r.sendMany(id, many)
	r.now = r.now.Add(30 * time.Minute)
	r.send(id, 4, "alive")
	r.settle()
	var ks []*taker
	for range consumers {
		ks = append(ks, r.attach(id, Main, queue.TakeOptions{}))
	}
	r.now = r.now.Add(40 * time.Minute)
	for _, k := range ks {
		k.c.SetDeliveryLimit(1)
		k.c.Drain()
	}
	left := r.counts(id)
	for range 10 {
		r.step()
		now := r.counts(id)
		if gone := left - now; gone > 64*256+2000 {
			t.Fatalf("one step cleared away %d messages", gone)
		}
		left = now
		r.sync()
	}
	r.settle()
	got, drained := 0, 0
	for _, k := range ks {
		got += len(k.got)
		drained += k.drained
	}
	if got != 1 || drained != consumers {
		t.Errorf("%d messages and %d drains, want the one that is alive and %d", got, drained, consumers)
	}
}

// What is estimated of a send before it changes anything is no less than what it writes,
// also if each copy goes to another queue and carries all that a copy can.
func TestSendToManyQueuesFitsOrIsRefused(t *testing.T) {
	for _, queues := range []int{200, 400, 600, 730} {
		r := newRig(t, Options{SnapshotAfter: 1 << 30})
		topic := r.define("topic", minute)
		var copies []Copy
		for range queues {
			err := r.s.Define(Definition{Name: "q"}, map[SubQueue]queue.Config{Main: {LockFor: time.Minute, DuplicateWindow: time.Hour}}, func(id ID, _ error) {
				copies = append(copies, Copy{ID: id, Arrival: queue.Arrival{MessageID: "m", Key: "k", TTL: time.Hour,
					At: r.now.Add(-time.Hour), OrderTime: r.now.Add(-2 * time.Hour), Origin: 1, Failures: 3, Hops: 1}})
			})
			if err != nil {
				t.Fatal(err)
			}
			r.step()
		}
		for r.settle(); r.s.tx.Durable() < r.s.view().Tail; {
			r.settle()
		}
		var got error
		answered := 0
		if err := r.s.Send(&Send{
			Bodies: []*message.Message{text("x")}, Copies: copies, Topic: topic, Published: 1,
			Done: func(seqs []queue.SeqNo, err error) { got, answered = err, answered+1 },
		}); err != nil {
			t.Fatal(err)
		}
		for r.settle(); r.s.tx.Durable() < r.s.view().Tail; {
			r.settle()
		}
		if answered != 1 || got != nil && !errors.Is(got, ErrTooLarge) {
			t.Errorf("%d queues: answered %d times, with %v", queues, answered, got)
		}
	}
}
