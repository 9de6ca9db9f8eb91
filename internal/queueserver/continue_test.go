// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/vfs"
)

// sendMany sends n messages and waits until they are stored.
func (r *rig) sendMany(id ID, n int) {
	r.t.Helper()
	for n > 0 {
		few := min(n, 500)
		n -= few
		s := &Send{Done: func(_ []queue.SeqNo, err error) {
			if err != nil {
				r.t.Errorf("send %d messages: %v", few, err)
			}
		}}
		for i := range few {
			s.Bodies = append(s.Bodies, text("x"))
			s.Copies = append(s.Copies, Copy{ID: id, Body: i})
		}
		if err := r.s.Send(s); err != nil {
			r.t.Fatalf("send: %v", err)
		}
		r.settle()
	}
}

// counts returns how many messages a queue has.
func (r *rig) counts(id ID) (n int64) {
	r.t.Helper()
	r.s.Look(func(tx *Tx) {
		q, err := tx.Inspect(id, Main)
		if err != nil {
			r.t.Fatalf("inspect: %v", err)
		}
		n = q.Counts().Total()
	})
	return n
}

// purge posts a purge of all messages.
func (r *rig) purge(id ID, done func(gone int, err error)) {
	r.t.Helper()
	p := new(queue.Purge)
	err := r.s.PostInSteps(func(tx *Tx) (over bool, err error) {
		err = tx.Apply(id, Main, func(q *queue.Queue, out *queue.Effects) error {
			over = q.Purge(tx.Now(), p, tx.Visits(), out)
			return nil
		})
		return over, err
	}, func(err error) { done(p.Gone, err) })
	if err != nil {
		r.t.Fatalf("purge: %v", err)
	}
}

func (r *rig) check() {
	r.t.Helper()
	if err := r.s.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// A purge of many is done in steps: each visits a bounded number of messages, others are
// served in between, and the answer comes when all is durable (A9).
func TestPurgeInSteps(t *testing.T) {
	const messages, step = 3000, 100
	r := newRig(t, Options{VisitStep: step, SnapshotAfter: 1 << 30})
	id, other := r.define("q", queue.Config{LockFor: time.Minute}), r.define("other", queue.Config{LockFor: time.Minute})
	r.sendMany(id, messages)
	gone, answered := 0, false
	r.purge(id, func(n int, err error) {
		if gone, answered = n, true; err != nil {
			t.Errorf("purge: %v", err)
		}
	})
	left := r.counts(id)
	for steps := 0; !answered; steps++ {
		if steps > messages/step+3 {
			t.Fatal("no answer")
		}
		acked := r.send(other, 0, "in between")
		r.step()
		now := r.counts(id)
		if left-now > step {
			t.Fatalf("a step purged %d messages", left-now)
		}
		left = now
		if answered {
			t.Fatal("the answer came before the last step was durable")
		}
		r.sync()
		r.s.manual().Observe()
		if !*acked {
			t.Fatal("a sender waits for the purge")
		}
		r.check()
	}
	if gone != messages || r.counts(id) != 0 {
		t.Errorf("%d purged, %d left, want %d and none", gone, r.counts(id), messages)
	}
}

// Steps do not go on without end while the disk is slow (A9).
func TestStepsWaitForTheDisk(t *testing.T) {
	r := newRig(t, Options{VisitStep: 100, SnapshotAfter: 1 << 30})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	steps := 0
	err := r.s.PostInSteps(func(tx *Tx) (bool, error) {
		steps++
		return false, tx.Note(id, make([]byte, 10_000))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		r.step()
	}
	if want := aheadBytes/10_000 + 1; steps != want {
		t.Errorf("%d steps of 10,000 bytes before anything was durable, want %d", steps, want)
	}
	if at, due := r.s.NextDeadline(); due && !at.After(r.now) {
		t.Error("the shard is due although it waits for the disk")
	}
	before := steps
	for range 10 { // several segments
		r.sync()
	}
	r.step()
	if steps == before {
		t.Error("no step after all was durable")
	}
}

// What a crash leaves of a purge is what was purged so far (A9).
func TestCrashInsideAPurge(t *testing.T) {
	r := newRig(t, Options{VisitStep: 100, SnapshotAfter: 1 << 30})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.sendMany(id, 1000)
	r.purge(id, func(int, error) { t.Error("a purge was answered that did not end") })
	for range 4 {
		r.step()
		r.sync()
	}
	left := r.counts(id)
	r.crash(1)
	r.check()
	if got := r.counts(id); got != left || left != 600 {
		t.Errorf("%d messages after the crash, %d before it, want 600", got, left)
	}
}

// A dropped entity is gone at once, but its bodies are freed in steps (A9).
func TestDropInSteps(t *testing.T) {
	const messages, step = 3000, 100
	for _, crash := range []bool{false, true} {
		r := newRig(t, Options{VisitStep: step, SnapshotAfter: 1 << 30})
		id, other := r.define("q", queue.Config{LockFor: time.Minute}), r.define("other", queue.Config{LockFor: time.Minute})
		r.sendMany(id, messages)
		r.sendMany(other, 10)
		before := r.s.view().Live
		answered := false
		if err := r.s.Drop([]ID{id}, func(err error) { answered = err == nil }); err != nil {
			t.Fatal(err)
		}
		size := (before - uint64(10)) / messages // of a body, about
		for steps := 0; r.s.view().Dropping > 0 || steps == 0; steps++ {
			was := r.s.view().Live
			r.step()
			if freed := was - r.s.view().Live; freed > (step+3)*(size+2) {
				t.Fatalf("a step freed %d bytes, of bodies of %d", freed, size)
			}
			r.check()
			if steps == 0 {
				r.sync()
				r.step()
				if !answered {
					t.Error("the drop waits for its bodies to be freed")
				}
			}
			if crash && steps == 3 {
				r.crash(7)
				break
			}
			if steps > messages/step+3 {
				t.Fatal("it does not end")
			}
		}
		r.check()
		if _, err := r.s.hostedQueue(id, Main); !errors.Is(err, ErrNoEntity) {
			t.Errorf("crash %t: %v, want %v", crash, err, ErrNoEntity)
		}
		if got := r.s.view().Live; got == 0 || got > 10*(size+2) {
			t.Errorf("crash %t: %d bytes live, want those of the other entity", crash, got)
		}
	}
}

// A change of the order is answered at once; the messages follow in steps, and until
// they have, the old order holds (A9).
func TestOrderChangesInSteps(t *testing.T) {
	r := newRig(t, Options{VisitStep: 100, SnapshotAfter: 1 << 30})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.sendMany(id, 1000)
	answered := false
	cfg := queue.Config{LockFor: time.Minute, ReceivePaused: true, Order: queue.Order{Fair: true}}
	err := r.s.Redefine(id, nil, map[SubQueue]queue.Config{Main: cfg}, func(err error) { answered = err == nil })
	if err != nil {
		t.Fatal(err)
	}
	r.step()
	r.sync()
	r.step()
	hq, _ := r.s.hostedQueue(id, Main)
	if !answered || !hq.q.Config().ReceivePaused || hq.q.InForce() {
		t.Errorf("after one step: answered %t, paused %t, in force %t; want a pause at once, and the order later",
			answered, hq.q.Config().ReceivePaused, hq.q.InForce())
	}
	steps := 0
	for at, due := r.s.NextDeadline(); due && !at.After(r.now) && steps < 100; at, due = r.s.NextDeadline() {
		r.step()
		r.check()
		steps++
	}
	if !hq.q.InForce() || hq.q.Reordering() || steps < 5 {
		t.Errorf("after %d steps more: in force %t, more to do %t", steps, hq.q.InForce(), hq.q.Reordering())
	}
}

// serving runs a shard until the test ends.
func serving(t *testing.T, opts Options) (*Shard, context.CancelFunc) {
	t.Helper()
	w, err := wal.Open(vfs.NewMem(), wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatalf("open the journal: %v", err)
	}
	s, err := Open(context.Background(), w, 0, opts)
	if err != nil {
		t.Fatalf("open the shard: %v", err)
	}
	upper, stop := context.WithCancel(t.Context())
	lower, end := context.WithCancel(context.WithoutCancel(t.Context()))
	done, closed := make(chan struct{}), make(chan struct{})
	go func() { // ends with upper, and is waited for below
		defer close(done)
		if err := s.Run(upper); err != nil {
			t.Errorf("run the shard: %v", err)
		}
	}()
	go func() { // ends with lower, and is waited for below
		defer close(closed)
		w.Run(lower) // what it returns is why it ended
	}()
	t.Cleanup(func() {
		stop()
		<-done
		end()
		<-closed
	})
	return s, stop
}

// When the caller gives up there are no more steps, and what they wrote for it can be
// read.
func TestCallInStepsThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serving(t, Options{})
		ctx, giveUp := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		steps := 0
		err := s.CallInSteps(ctx, func(*Tx) (bool, error) {
			if steps++; steps == 10 {
				giveUp(enough)
			}
			return false, nil
		})
		before := steps // a race, if there were more
		time.Sleep(time.Second)
		if !errors.Is(err, enough) || steps != before || steps < 10 {
			t.Errorf("%v after %d steps, then %d; want %v and no more", err, before, steps, enough)
		}
		if err := s.Call(t.Context(), func(*Tx) error { return nil }); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

// A shard that stops ends what is done in steps, and says so.
func TestStopEndsWhatIsDoneInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := serving(t, Options{})
		steps := 0
		err := s.CallInSteps(t.Context(), func(*Tx) (bool, error) {
			if steps++; steps == 10 {
				stop()
			}
			return false, nil
		})
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%v after %d steps, want %v", err, steps, ErrStopped)
		}
	})
}

// Several operations take turns, and an error ends its own only.
func TestOperationsInStepsTakeTurns(t *testing.T) {
	r := newRig(t, Options{})
	var order []int
	errs := map[int]error{}
	broken := errors.New("broken")
	for i := range 3 {
		steps := 0
		err := r.s.PostInSteps(func(*Tx) (bool, error) {
			order = append(order, i)
			steps++
			if i == 1 && steps == 2 {
				return false, broken
			}
			return steps == 3, nil
		}, func(err error) { errs[i] = err })
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		r.settle()
	}
	want := []int{0, 1, 2, 0, 1, 2, 0, 2} // the first step of each at once, then in turns
	for i := range want {
		if i >= len(order) || order[i] != want[i] {
			t.Fatalf("steps %v, want %v", order, want)
		}
	}
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], broken) || errs[2] != nil {
		t.Errorf("answers %v", errs)
	}
}
