// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/jobs/redrive"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// deadLetter puts n messages into the dead letters of an address.
func (r *rig) deadLetter(addr string, n int) {
	r.t.Helper()
	rec, k := r.receive(addr, uint64(n), ReceiverOptions{})
	defer rec.Close()
	for range n {
		d := <-k.ds
		err := r.Settle(r.t.Context(), addr, []queue.Token{d.Token}, Outcome{Disposition: DeadLetter, Reason: "bad", Description: "very"})
		if err != nil {
			r.t.Fatalf("dead-letter: %v", err)
		}
	}
}

func (r *rig) counts(addr string) Counts {
	r.t.Helper()
	rt, err := r.Runtime(r.t.Context(), addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return rt.Counts
}

func TestRedriveBringsDeadLettersBack(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresDuplicateDetection: true})
	for i := range 300 { // more than one window
		d := message.Draft{Body: fmt.Append(nil, i)}
		r.send("q", d.Message())
	}
	r.deadLetter("q", 300)
	got, err := r.Redrive(t.Context(), "q", Redrive{})
	if err != nil || got != (Redriven{Moved: 300}) {
		t.Fatalf("Redrive = %+v, %v, want 300 moved", got, err)
	}
	r = r.restart()
	if c := r.counts("q"); c.Active != 300 || c.Dead != 0 {
		t.Errorf("after redrive and restart: %+v, want 300 active and none dead", c)
	}
	_, k := r.receive("q", 1, ReceiverOptions{})
	d := <-k.ds
	m, err := d.Message()
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := m.Property(message.PropertyDeadLetterReason); ok {
		t.Errorf("the message still says why it died: %v", v)
	}
}

// Dead letters whose target has expensive rules or conditions are moved in turns, and a redrive
// whose caller leaves moves no more of them: they stay, unlocked.
func TestRedriveTakesTurns(t *testing.T) {
	const sql = "p LIKE '%_a_a_a_a_b_%'"
	policy := fmt.Appendf(nil, `{"classes":[{"name":"a","level":9,"when":%q}]}`, sql)
	long := message.Draft{Application: []message.Pair{{Name: "p", Value: codec.String(strings.Repeat("a", 30_000))}}}
	for name, to := range map[string]string{"back": "", "elsewhere": "t"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t)
				r.queue(entity.Queue{Name: "q", Policy: policy})
				r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{{Name: "r", Filter: entity.Filter{SQL: sql}}}})
				for range 3 {
					r.send("q", long.Message())
				}
				r.send("t", long.Message()) // it is known to be expensive
				r.deadLetter("q", 3)
				var leave []func()
				for i := range max(1, runtime.GOMAXPROCS(0)/2) {
					other := fmt.Sprint("other", i)
					r.queue(entity.Queue{Name: other})
					n, _, err := r.Find(other)
					if err != nil {
						t.Fatal(err)
					}
					leave = append(leave, r.ForProcessor(n))
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				over := make(chan error, 1)
				go func() {
					_, err := r.Redrive(ctx, "q", Redrive{To: to})
					over <- err
				}()
				synctest.Wait()
				if len(over) > 0 {
					t.Errorf("the redrive did not wait: %v", <-over)
					return
				}
				cancel()
				for _, f := range leave {
					f()
				}
				if err := <-over; err == nil {
					t.Error("the redrive went on when its caller had left")
				}
				synctest.Wait()
				if c := r.counts("q"); c.Dead < 2 {
					t.Errorf("%+v, want at least two dead letters that were not moved", c)
				}
				if got, err := r.Redrive(t.Context(), "q", Redrive{To: to}); err != nil || got.Moved < 2 || got.Left > 0 {
					t.Errorf("the next redrive: %+v, %v, want the rest", got, err)
				}
			})
		})
	}
}

func TestRedriveElsewhereWithFilterAndLimit(t *testing.T) {
	r := start(t)
	// Names that live in either shard, so that both ways of moving are taken.
	for _, name := range []string{"a", "b", "c", "d"} {
		r.queue(entity.Queue{Name: name})
	}
	for _, to := range []string{"b", "c", "d"} {
		for i := range 4 {
			r.send("a", msg(fmt.Sprint(i), "odd", fmt.Sprint(i%2)))
		}
		r.deadLetter("a", 4)
		odd := func(_ *Delivery, m *message.Message) bool {
			v, _ := m.Property("odd")
			s, _ := v.Str()
			return s == "1"
		}
		got, err := r.Redrive(t.Context(), "a/$DeadLetterQueue", Redrive{To: to, Match: odd})
		if err != nil || got.Moved != 2 || got.Left != 2 {
			t.Errorf("to %q: %+v, %v, want 2 moved and 2 left", to, got, err)
		}
		if c := r.counts(to); c.Active != 2 {
			t.Errorf("%q has %d, want 2", to, c.Active)
		}
		first, err := r.Redrive(t.Context(), "a", Redrive{To: to, Max: 1})
		if err != nil || first.Moved != 1 || first.Next == 0 {
			t.Errorf("one of two to %q: %+v, %v, want 1 moved and a place to go on", to, first, err)
		}
		rest, err := r.Redrive(t.Context(), "a", Redrive{To: to, Max: 5, From: first.Next})
		if err != nil || rest != (Redriven{Moved: 1}) {
			t.Errorf("the rest to %q: %+v, %v, want 1 moved", to, rest, err)
		}
	}
}

func TestRedriveOfASubscriptionReachesItAlone(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "one"}, entity.Subscription{Name: "two"})
	r.send("t", msg("x"))
	r.deadLetter("t/Subscriptions/one", 1)
	if got, err := r.Redrive(t.Context(), "t/Subscriptions/one", Redrive{}); err != nil || got.Moved != 1 {
		t.Fatalf("Redrive = %+v, %v", got, err)
	}
	for name, want := range map[string]int64{"one": 1, "two": 1} {
		if c := r.counts("t/Subscriptions/" + name); c.Active != want || c.Dead != 0 {
			t.Errorf("%s: %+v, want %d active", name, c, want)
		}
	}
}

func TestRedriveThatIsRefusedLosesNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("x"))
	r.deadLetter("q", 1)
	if _, err := r.Redrive(t.Context(), "q", Redrive{To: "nowhere"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("to nowhere: %v, want %v", err, ErrNotFound)
	}
	if err := r.Pause(t.Context(), "q", Pause{Sending: true}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Redrive(t.Context(), "q", Redrive{})
	if !errors.Is(err, ErrDisabled) || got.Moved != 0 || got.Left != 1 {
		t.Errorf("to a paused queue: %+v, %v, want %v", got, err, ErrDisabled)
	}
	if err := r.Pause(t.Context(), "q", Pause{}); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Redrive(t.Context(), "q", Redrive{}); err != nil || got.Moved != 1 {
		t.Errorf("when it goes on: %+v, %v, want 1 moved: nothing may stay locked", got, err)
	}
}

// TestRedriveStopsAtWhatWasThereWhenItBegan is for B10: what dies while a redrive
// runs, again or for the first time, is not its business, also if the redrive goes
// on in another call.
func TestRedriveStopsAtWhatWasThereWhenItBegan(t *testing.T) {
	for _, batch := range []int{0, 1, 7} {
		t.Run(fmt.Sprint("max ", batch), func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "q"})
			r.queue(entity.Queue{Name: "other"})
			for i := range 20 {
				r.send("q", msg(fmt.Sprint(i)))
			}
			r.deadLetter("q", 20)
			seen := 0
			dies := func(*Delivery, *message.Message) bool { // another one dies for each that is looked at
				if seen++; seen <= 60 {
					r.send("q", msg("late"))
					r.deadLetter("q", 1)
				}
				return true
			}
			moved, again := 0, Redrive{To: "other", Max: batch, Match: dies}
			for range 100 {
				got, err := r.Redrive(t.Context(), "q", again)
				if err != nil {
					t.Fatal(err)
				}
				moved += got.Moved
				if got.Next == 0 {
					break
				}
				again.From, again.Until = got.Next, got.Until
			}
			if c := r.counts("q"); moved != 20 || c.Dead != 20 {
				t.Errorf("%d moved and %d dead, want the 20 that were there and the 20 that came", moved, c.Dead)
			}
		})
	}
}

// TestRedriveClassifiesByThePolicyThatHolds is for B10: a dead letter has the class
// number of the policy under which it died; back in its queue it has that of the
// policy there is now.
func TestRedriveClassifiesByThePolicyThatHolds(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	r.send("q", msg("a", "plan", "paid"), msg("b", "Priority", "9"))
	r.deadLetter("q", 2)
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"fairKey": "plan", "classes": [
		{"name": "trial", "level": 1, "when": "plan = 'trial'"},
		{"name": "paid", "level": 7, "when": "plan = 'paid'"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Redrive(t.Context(), "q", Redrive{}); err != nil || got.Moved != 2 {
		t.Fatalf("Redrive = %+v, %v", got, err)
	}
	ds, err := r.Peek(t.Context(), "q", 0, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%s: class %d level %d key %q", body(t, d), d.Class, d.Level, d.Key))
	}
	wantBodies(t, "redriven", got, `a: class 2 level 7 key "paid"`, `b: class 0 level 9 key ""`)
}

// TestRedrivePassesWhatItCannotRead: a damaged dead letter does not keep those
// behind it.
func TestRedrivePassesWhatItCannotRead(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("a"), msg("broken"), msg("c"))
	r.deadLetter("q", 3)
	r = r.restart()
	r.damage("broken")
	if got, err := r.Redrive(t.Context(), "q", Redrive{}); err != nil || got != (Redriven{Moved: 2, Left: 1}) {
		t.Errorf("Redrive = %+v, %v; want two moved and one left", got, err)
	}
}

// A redrive can take long: it ends when there is no right to it any more.
func TestRedriveEndsWithItsRight(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	for range 3 * redrive.Window {
		r.send("q", msg("x"))
	}
	r.deadLetter("q", 3*redrive.Window)
	revoked, looks := errors.New("revoked"), 0
	ctx := Guard(t.Context(), func() error {
		if looks++; looks > 1 {
			return revoked
		}
		return nil
	})
	if got, err := r.Redrive(ctx, "q", Redrive{}); !errors.Is(err, revoked) || got.Moved != redrive.Window {
		t.Errorf("Redrive = %+v, %v, want one window moved and then the error", got, err)
	}
}

// A dead letter that goes to where duplicates are dropped may have an identifier that is
// known there, perhaps from itself. It is moved all the same.
func TestRedriveToDuplicateDetectionLosesNothing(t *testing.T) {
	same := func(body string) *message.Message {
		d := message.Draft{Body: []byte(body), MessageID: codec.String("same")}
		return d.Message()
	}
	r := start(t)
	r.queue(entity.Queue{Name: "from"})
	at := map[string]string{"a": "a", "b": "b", "c": "c", "d": "d"} // in either shard
	for name := range at {
		r.queue(entity.Queue{Name: name, RequiresDuplicateDetection: true})
	}
	for _, name := range []string{"e", "f", "g", "h"} {
		r.topic(entity.Topic{Name: name, RequiresDuplicateDetection: true}, entity.Subscription{Name: "s"})
		at[name] = name + "/Subscriptions/s"
	}
	redrive := func(from, to string) {
		t.Helper()
		r.deadLetter(from, 1)
		if got, err := r.Redrive(t.Context(), from, Redrive{To: to}); err != nil || got != (Redriven{Moved: 1}) {
			t.Fatalf("Redrive to %q = %+v, %v, want one moved", to, got, err)
		}
	}
	for to, addr := range at {
		r.send(to, same("known"))
		rec, k := r.receive(addr, 1, ReceiverOptions{})
		r.settle(rec, <-k.ds, Outcome{Disposition: Complete})
		rec.Close()
		r.send("from", same("redriven"))
		redrive("from", to)
		wantBodies(t, to, r.take(addr), "redriven")
	}

	r.queue(entity.Queue{Name: "q", RequiresDuplicateDetection: true})
	r.send("q", same("itself"))
	redrive("q", "q")
	wantBodies(t, "q", r.take("q"), "itself")
}

// A redrive that is called off while the disk hangs keeps no dead letter locked.
func TestRedriveThatIsCalledOffLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowDisk{FS: vfs.NewMem()}
		r := startOn(t, disk)
		r.queue(entity.Queue{Name: "q"})
		r.send("q", msg("m"))
		r.deadLetter("q", 1)
		const dead = "q/$DeadLetterQueue"

		gate := make(chan struct{})
		hang := func(*Delivery, *message.Message) bool { // from now on nothing becomes durable
			disk.syncs.Store(&gate)
			s, err := r.OpenSender("q", SenderOptions{})
			if err != nil {
				t.Error(err)
				return false
			}
			s.Send([]*message.Message{msg("on its way")}, func(error) {})
			synctest.Wait()
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Redrive(ctx, dead, Redrive{Match: hang}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Redrive: %v, want it called off", err)
		}
		disk.syncs.Store(nil)
		close(gate)
		synctest.Wait()
		ds, err := r.Peek(t.Context(), dead, 0, 1, nil)
		if err != nil || len(ds) != 1 {
			t.Fatalf("%d dead letters, %v", len(ds), err)
		}
		if ds[0].State != queue.Ready {
			t.Errorf("the dead letter is in state %v, want it free", ds[0].State)
		}
	})
}
