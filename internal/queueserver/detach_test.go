// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// What a consumer was to be given and did not get goes back at its detach,
// at once and uncounted, whatever it waits for and however it was taken.
func TestDetachReturnsWhatWasNotDelivered(t *testing.T) {
	want := []string{"a", "b", "c"}
	for name, deletes := range map[string]bool{"locked": false, "received and deleted": true} {
		for when, wait := range map[string]func(r *rig){
			"before the sync": func(*rig) {},
			"after the sync":  (*rig).sync, // durable, and not handed over yet
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				r := newRig(t, Options{})
				id := r.define("orders", minute)
				k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: deletes})
				k.c.SetDeliveryLimit(10)
				for _, body := range want {
					r.send(id, 4, body)
				}
				r.step()
				wait(r)
				k.c.Detach()
				r.step()
				if len(k.got) != 0 {
					t.Fatalf("a consumer that was detached got %q", k.bodies())
				}
				next := r.attach(id, Main, queue.TakeOptions{})
				next.c.SetDeliveryLimit(10)
				r.settle()
				if got := next.bodies(); !slices.Equal(got, want) {
					t.Fatalf("the next consumer got %q, want %q", got, want)
				}
				for i := range next.got {
					if n := next.got[i].Failures; n != 0 {
						t.Errorf("message %d counts %d failures, and nobody has seen it", next.got[i].Seq, n)
					}
				}
				r.settle()
				r.crash(1)
				last := r.attach(id, Main, queue.TakeOptions{})
				last.c.SetDeliveryLimit(10)
				r.settle()
				if got := last.bodies(); !slices.Equal(got, want) {
					t.Fatalf("after a crash: got %q, want %q", got, want)
				}
			})
		}
	}
}

// A drain voids the allowance also of what was taken before it and goes back, because
// its lock ran out before the disk was there: nothing comes after the answer.
func TestNothingComesAfterADrain(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", queue.Config{LockFor: time.Second})
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	r.send(id, 4, "a")
	k.c.Drain()
	r.step()
	if k.c.held.Waiting() != 2 {
		t.Fatalf("%d things wait for the disk, want a message and the end of a drain", k.c.held.Waiting())
	}
	r.now = r.now.Add(2 * time.Second)
	r.step()
	r.settle()
	if len(k.got) != 0 || k.drained != 1 {
		t.Errorf("%d messages and %d drains, want none and one", len(k.got), k.drained)
	}
	k.c.SetDeliveryLimit(1)
	r.settle()
	if len(k.got) != 1 {
		t.Errorf("%d messages after it was allowed one", len(k.got))
	}
}

// Who waits for nothing but a group that is durable gets it also while the shard waits
// for space: a message that was received and deleted would be lost with it.
func TestSafeMessagesAreHandedOutWithoutSpace(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("orders", minute)
	r.sendAll(id, "a", "b")
	k := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	k.c.SetDeliveryLimit(1)
	r.step()
	if err := r.wal.Commit(); err != nil { // its removal is durable
		t.Fatal(err)
	}
	r.s.manual().SetJournal(&crammed{Journal: r.s.manual().Journal(), is: true})
	k.c.SetDeliveryLimit(2)
	r.step()
	if !r.s.Stuck() {
		t.Fatal("not stuck; the test shows nothing")
	}
	r.step()
	if got, want := k.bodies(), []string{"a"}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}
