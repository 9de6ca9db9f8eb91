// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/lifecycle"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

var errTold = errors.New("told to stop")

// A shard that is told to stop waits for the disk
// up to its time limit.
func TestDrainEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("q", queue.Config{LockFor: time.Minute})
		ctx, stop := context.WithCancelCause(t.Context())
		stack := lifecycle.New(ctx)
		stack.Go("shard", r.s.Run) // and nobody runs the journal: the disk hangs
		var answer error
		for range 3 {
			err := r.s.Send(&Send{
				Bodies: []*message.Message{text("late")}, Copies: []Copy{{ID: id}},
				Done: func(_ []queue.SeqNo, err error) { answer = err },
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		stop(errTold)
		err := stack.Wait(10 * time.Second)
		if !errors.Is(err, ErrUnfinished) || errors.Is(err, lifecycle.ErrStopTimeout) {
			t.Errorf("Run returned %v, want %v in time", err, ErrUnfinished)
		}
		if want := "shard: shard 0: engine: stopped before everything was durable: 3 groups wait for the disk"; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !errors.Is(answer, ErrStopped) {
			t.Errorf("the sender was told %v, want %v", answer, ErrStopped)
		}
	})
}

// With a disk that answers, a clean stop answers every caller.
func TestDrainAnswersWhatWasAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		id := r.define("q", queue.Config{LockFor: time.Minute})
		ctx, stop := context.WithCancelCause(t.Context())
		stack := lifecycle.New(ctx)
		stack.Go("journal", r.wal.Run)
		stack.Go("shard", r.s.Run)
		acked := r.send(id, 4, "in time")
		stop(errTold)
		if err := stack.Wait(10 * time.Second); err != nil {
			t.Errorf("stop: %v", err)
		}
		if !*acked {
			t.Error("what was accepted was not answered")
		}
	})
}

// A stop does not wait for the rest of a snapshot, which the next life does not miss.
func TestStopDoesNotFinishASnapshot(t *testing.T) {
	r := newRig(t, Options{SnapshotStep: 10})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.sendMany(id, 2000)
	r.s.manual().BeginSnapshot()
	acked := r.send(id, 4, "in time")
	log, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.wal.Run(log) }() // ends with stop, and is waited for
	if err := r.s.manual().Drain(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	r.s.manual().Stop(ErrStopped)
	stop()
	<-done
	if !*acked {
		t.Error("what was accepted was not answered")
	}
	if !r.s.view().Snapshotting {
		t.Error("the stop has finished a snapshot that had just begun")
	}
	r.crash(0)
	if n := r.counts(id); n != 2001 {
		t.Errorf("%d messages after the stop, want 2001", n)
	}
}

// crammed is a journal on a disk without a free byte.
type crammed struct {
	journal.Journal
	is bool
}

func (c *crammed) Append(cl journal.Claim, g *journal.Group) error {
	if c.is {
		return journal.ErrFull
	}
	return c.Journal.Append(cl, g)
}

// A shard that is stopped while it waits for space says that it has not finished, and
// answers everybody.
func TestStopWithoutSpace(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define("q", queue.Config{LockFor: time.Minute})
	r.sendMany(id, 2)
	k := r.attach(id, Main, queue.TakeOptions{})
	k.c.SetDeliveryLimit(1)
	deletes := r.attach(id, Main, queue.TakeOptions{ReceiveAndDelete: true})
	r.settle()
	c := &crammed{Journal: r.s.manual().Journal(), is: true}
	r.s.manual().SetJournal(c)
	var errs []error
	if err := r.s.Settle(&Settle{ID: id, Tokens: []queue.Token{k.got[0].Token}, Done: func(es []error) { errs = es }}); err != nil {
		t.Fatal(err)
	}
	deletes.c.SetDeliveryLimit(1)
	r.step()
	if !r.s.Stuck() {
		t.Fatal("not stuck; the test shows nothing")
	}
	if err := r.s.manual().Drain(t.Context()); !errors.Is(err, ErrUnfinished) {
		t.Errorf("stop: %v, want %v", err, ErrUnfinished)
	}
	r.s.manual().Stop(ErrStopped)
	if len(errs) != 1 || !errors.Is(errs[0], ErrStopped) {
		t.Errorf("the settlement was answered %v, want %v", errs, ErrStopped)
	}
	if len(deletes.got) != 0 || !errors.Is(deletes.ended, ErrStopped) {
		t.Errorf("%d messages came, and the end: %v", len(deletes.got), deletes.ended)
	}
	r.crash(0)
	if n := r.counts(id); n != 2 {
		t.Errorf("%d messages after the stop, want 2", n)
	}
}

// computer is one whose wall clock is set while a shard runs on it.
type computer struct {
	start time.Time
	set   atomic.Int64 // by how much the wall clock is off, in nanoseconds
}

func (m *computer) read() clock.Reading {
	now := time.Now()
	return clock.Reading{Wall: now.Add(time.Duration(m.set.Load())), Elapsed: now.Sub(m.start)}
}

func newComputer() (*computer, Options) {
	m := &computer{start: time.Now()}
	return m, Options{Clock: clock.New(m.read)}
}

// inbox is a sink that counts.
type inbox struct{ got atomic.Int64 }

func (i *inbox) Deliver(ds []Delivery) { i.got.Add(int64(len(ds))) }
func (i *inbox) Drained()              {}
func (i *inbox) Ended(error)           {}

// runs starts a shard and its journal; they end with the test.
func (r *rig) runs(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	stack := lifecycle.New(ctx)
	stack.Go("journal", r.wal.Run)
	stack.Go("shard", r.s.Run)
	return func() {
		cancel(errTold)
		if err := stack.Wait(0); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

// A wall clock that is set back by an hour freezes
// no lock, no schedule and no life; nor does it after a restart.
func TestWallClockSetBackFreezesNothing(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m, opts := newComputer()
			r := newRig(t, opts)
			r.now = time.Now()
			id := r.define("q", queue.Config{LockFor: 30 * time.Second})
			stop := r.runs(t)
			store := func(body string, a queue.Arrival) {
				t.Helper()
				done := make(chan error, 1)
				err := r.s.Send(&Send{Bodies: []*message.Message{text(body)}, Copies: []Copy{{ID: id, Arrival: a}},
					Done: func(_ []queue.SeqNo, err error) { done <- err }})
				if err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			store("before", queue.Arrival{TTL: 10 * time.Minute})
			m.set.Store(-int64(time.Hour))
			if restart {
				stop()
				r.opts.Clock = clock.New(m.read)
				r.crash(1)
				stop = r.runs(t)
			}
			defer func() { stop() }()
			store("after", queue.Arrival{TTL: time.Minute})
			store("scheduled", queue.Arrival{NotBefore: r.s.Clock().Now().Add(time.Minute)})
			box := new(inbox)
			consumer, attached := r.s.AddSink(box), make(chan error, 1)
			err := r.s.Attach(Attachment{Consumer: consumer, ID: id}, func(err error) { attached <- err })
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(<-attached, r.s.SetDeliveryLimit(consumer, 100)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := box.got.Load(); got != 2 {
				t.Fatalf("%d deliveries, want the two that are not scheduled", got)
			}
			time.Sleep(34 * time.Second)
			synctest.Wait()
			if got := box.got.Load(); got != 4 {
				t.Errorf("restart %v: %d deliveries after the locks of 30s should have run out, want 4", restart, got)
			}
			time.Sleep(36 * time.Second)
			synctest.Wait()
			var counts queue.Counts
			if err := r.s.Call(t.Context(), func(tx *Tx) error {
				q, err := tx.Inspect(id, Main)
				counts = q.Counts()
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if counts.Scheduled != 0 || counts.Total() != 2 {
				t.Errorf("restart %v: after the minute of the schedule and of a life: %+v, want two messages, none scheduled", restart, counts)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
		})
	}
}
