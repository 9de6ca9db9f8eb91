// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// TestRecoveryFindsWhatWasAcknowledged runs commands and snapshots with crashes at any
// moment. What comes back is the state after some command, not before the last one that
// was acknowledged or whose effect was seen outside.
func TestRecoveryFindsWhatWasAcknowledged(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runCrashes(t, seed) })
	}
}

func runCrashes(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	r := newRig(t, Options{SnapshotAfter: 2000, SnapshotStep: 3, VisitStep: 3})
	states := []string{r.h.state()} // after each command
	acked := 0                      // commands acknowledged, or seen
	crashes, snapshots := 0, uint64(0)
	for turn := range 600 {
		switch n := rnd.IntN(20); {
		case n < 12:
			number := len(states)
			states = append(states, "")
			r.do(func(h *counterHost) {
				randomCommand(t, rnd, h)
				states[number] = h.state()
				h.held.Hold(h.tx, Pending, fmt.Sprint(number))
			}, func() { acked = max(acked, number) })
		case n < 15:
			r.step()
		case n < 17:
			r.commit()
		case n < 18:
			r.work() // the journal may have been called to free
			r.checkBodies()
		case n < 19:
			r.now = r.now.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		case turn%3 == 0:
			for _, s := range r.h.seen {
				var number int
				_, _ = fmt.Sscan(s, &number)
				acked = max(acked, number)
			}
			snapshots = max(snapshots, r.e.Snapshots())
			r.crash(rnd.Uint64())
			crashes++
			got := r.h.state()
			at := slices.Index(states[acked:], got)
			if at < 0 {
				t.Fatalf("turn %d: recovered\n%swhich was never, or before command %d of %d:\n%s", turn, got, acked, len(states)-1, states[acked])
			}
			states = states[:acked+at+1] // the rest has never been
			acked += at
		}
		r.e.Step(r.now)
	}
	r.settle()
	r.check()
	if got := r.h.state(); got != states[len(states)-1] {
		t.Errorf("at the end\n%swant\n%s", got, states[len(states)-1])
	}
	if crashes == 0 || snapshots < 2 {
		t.Logf("%d crashes, %d snapshots", crashes, snapshots)
	}
}

func randomCommand(t *testing.T, rnd *rand.Rand, h *counterHost) {
	ids := h.Parts()
	switch n := rnd.IntN(20); {
	case len(ids) < 2 || n == 0 && len(ids) < 6:
		h.define()
	case n == 1:
		h.drop(ids[rnd.IntN(len(ids))])
	default:
		var body machine.Ref
		if rnd.IntN(2) == 0 {
			var err error
			if body, err = h.tx.StoreOne(make([]byte, 1+rnd.IntN(3000))); err != nil && !errors.Is(err, ErrDiskFull) {
				t.Fatal(err)
			}
		}
		h.add(2*ids[rnd.IntN(len(ids))]+rnd.Uint64N(2), rnd.IntN(8), rnd.Uint64N(100), body)
	}
}

// TestSnapshotAtEveryCut crashes after each step of a snapshot, with commands before each
// of them, and moves bodies on the way.
func TestSnapshotAtEveryCut(t *testing.T) {
	for cut := 0; ; cut++ {
		r := newRig(t, Options{SnapshotAfter: 3000, SnapshotStep: 2})
		a, b := r.define(), r.define()
		before := r.e.Snapshots()
		for i := 0; r.e.Snapshots() == before; i++ {
			r.do(func(h *counterHost) {
				body, _ := h.tx.StoreOne(make([]byte, 100))
				h.add(a, i%8, 1, body)
			}, nil)
			r.step()
			r.commit()
			if i > 1000 {
				t.Fatal("there is no snapshot")
			}
		}
		for n := 0; n < cut && r.e.snapshot.busy; n++ {
			r.do(func(h *counterHost) { h.add(b, n%8, 3, machine.Ref{}) }, nil)
			r.step()
			r.commit()
			r.work()
		}
		over := !r.e.snapshot.busy
		want := r.h.state()
		r.crash(uint64(cut))
		if got := r.h.state(); got != want {
			t.Fatalf("after %d steps: got\n%swant\n%s", cut, got, want)
		}
		r.settle()
		if over {
			return
		}
	}
}

// TestNothingLeavesBeforeItIsDurable looks at replies and released values between the
// append and the commit.
func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	answered := false
	r.do(func(h *counterHost) {
		h.add(id, 0, 1, machine.Ref{})
		h.held.Hold(h.tx, Pending, "one")
		h.held.Hold(h.tx, 0, "two") // behind it, whatever it depends on
	}, func() { answered = true })
	for range 3 {
		r.step()
	}
	if answered || len(r.h.seen) > 0 {
		t.Fatalf("before the commit: answered %t, seen %v", answered, r.h.seen)
	}
	r.commit()
	r.step()
	if !answered || !slices.Equal(r.h.seen, []string{"one", "two"}) {
		t.Fatalf("after the commit: answered %t, seen %v", answered, r.h.seen)
	}
}

// TestStepsShareTheEngine does a long operation in steps, with others in between.
func TestStepsShareTheEngine(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	steps, done := 0, false
	err := r.e.Submit(&Steps{
		Step: func(*Tx) (bool, error) {
			r.h.add(id, 0, 1, machine.Ref{})
			steps++
			return steps == 5, nil
		},
		Done: func(error) { done = true },
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 5; n++ {
		ran := 0
		r.do(func(*counterHost) { ran = steps }, nil)
		r.step()
		if ran > n || steps > n || done {
			t.Fatalf("in step %d the operation took %d steps, done %t", n, steps, done)
		}
	}
	r.settle()
	if steps != 5 || !done {
		t.Fatalf("%d steps, done %t", steps, done)
	}
	r.crash(1)
	if got := r.h.counter(id).sums[0]; got != 5 {
		t.Errorf("recovered %d, want 5", got)
	}
}

// TestFullDisk refuses bodies, goes on with what frees space, and waits when even the
// reserve is used up.
func TestFullDisk(t *testing.T) {
	r := newRig(t, Options{SnapshotAfter: 256 << 10})
	id := r.define()
	r.disk.SetSize(2 << 20)
	refused := false
	for i := 0; !refused; i++ {
		r.do(func(h *counterHost) {
			var ref [1]machine.Ref
			switch err := h.tx.Store(journal.Ordinary, [][]byte{make([]byte, 1000)}, ref[:]); {
			case errors.Is(err, ErrDiskFull):
				refused = true
			case err != nil:
				t.Fatal(err)
			default:
				h.add(id, i%8, 1, ref[0])
			}
		}, nil)
		r.settle()
		if i > 100_000 {
			t.Fatal("the disk is never full")
		}
		if i == 20 {
			r.disk.SetOthers(1 << 40) // and not a byte more is to be had
		}
	}
	answered := 0
	for i := 0; !r.e.Stuck(); i++ {
		r.do(func(h *counterHost) { h.add(id, 0, 1, machine.Ref{}) }, func() { answered++ })
		r.e.Step(r.now)
		_ = r.wal.Commit()
		if i > 1_000_000 {
			t.Fatal("the reserve is never used up")
		}
	}
	had := answered
	want := r.h.counter(id).sums[0]
	r.disk.SetOthers(0)
	r.disk.SetSize(64 << 20)
	for i := 0; r.e.Stuck(); i++ {
		r.now = r.now.Add(retryFull)
		_ = r.wal.Commit()
		r.e.Step(r.now)
		if i > 100 {
			t.Fatal("still stuck with space on the disk")
		}
	}
	r.settle()
	if answered <= had {
		t.Errorf("%d answered, want more than the %d before there was no space", answered, had)
	}
	r.crash(3)
	if got := r.h.counter(id).sums[0]; got != want {
		t.Errorf("recovered %d, want %d", got, want)
	}
}

// TestTooLarge says what can never be one group, before anything has changed.
func TestTooLarge(t *testing.T) {
	r := newRig(t, Options{})
	r.do(func(h *counterHost) {
		if err := h.tx.Reserve(Needs{Records: 1 << 30}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Reserve: %v, want %v", err, ErrTooLarge)
		}
		if err := h.tx.Reserve(Needs{Records: 100}); err != nil {
			t.Errorf("Reserve: %v", err)
		}
	}, nil)
	r.settle()
}

// TestDeadlines has a machine called with the time once, when it is due.
func TestDeadlines(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	due := r.now.Add(time.Minute)
	r.do(func(h *counterHost) {
		h.counter(id).due = due
		h.tx.Schedule(h.units[id])
	}, nil)
	r.settle()
	if at, ok := r.e.deadlines.next(); !ok || !at.Equal(due) {
		t.Fatalf("next deadline %v, %t; want %v", at, ok, due)
	}
	for _, at := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		r.now = due.Add(at - time.Minute)
		r.settle()
		want := uint64(0)
		if at >= time.Minute {
			want = 1
		}
		if got := r.h.counter(id).sums[0]; got != want {
			t.Errorf("after %v: counted %d, want %d", at, got, want)
		}
	}
}

// TestEmptyEngineWaitsForTheJournal: without a history there is nothing to do before the
// journal has said anything, which on a slow disk may take long.
func TestEmptyEngineWaitsForTheJournal(t *testing.T) {
	r := newRig(t, Options{})
	for range 3 {
		r.step()
		if at, ok := r.e.NextDeadline(); ok && !at.After(r.now) {
			t.Fatalf("it has something to do at %v, before now", at)
		}
	}
	r.commit()
	r.step()
	if at, ok := r.e.NextDeadline(); !ok || at.Sub(r.now) != quietAfter {
		t.Errorf("it looks again at %v, %t; want %v after the journal's word", at, ok, quietAfter)
	}
}

// leasing is a journal whose claims hold until a time.
type leasing struct {
	journal.Journal
	until time.Time
	fn    func(journal.Status)
	last  journal.Status
}

func (j *leasing) Watch(c journal.Claim, fn func(journal.Status)) {
	j.fn = fn
	j.Journal.Watch(c, func(st journal.Status) {
		j.last = st
		j.tell()
	})
}

func (j *leasing) tell() {
	st := j.last
	st.Lease = j.until
	j.fn(st)
}

// TestNothingLeavesWithoutTheLease: when the lease is over no caller is answered, although
// everything is durable; when it is prolonged, all are.
func TestNothingLeavesWithoutTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		j := &leasing{until: time.Now().Add(time.Second)}
		r.wrap = func(w journal.Journal) journal.Journal { j.Journal = w; return j }
		r.crash(1)
		id := r.define()
		answered := 0
		count := func() {
			r.do(func(h *counterHost) {
				h.add(id, 0, 1, machine.Ref{})
				h.held.Hold(h.tx, Pending, "sum")
			}, func() { answered++ })
		}
		count()
		r.settle()
		if answered != 1 || len(r.h.seen) != 1 {
			t.Fatalf("within the lease: %d answered, %d seen", answered, len(r.h.seen))
		}
		look := func() { // writes nothing, and speaks of what is durable
			r.do(func(h *counterHost) { h.held.Hold(h.tx, 0, "old") }, func() { answered++ })
		}
		for n, command := range []func(){look, count} {
			time.Sleep(2 * time.Second)
			command()
			r.settle()
			if answered != n+1 || len(r.h.seen) != n+1 {
				t.Fatalf("after it: %d answered, %d seen", answered, len(r.h.seen))
			}
			j.until = time.Now().Add(time.Second)
			j.tell()
			r.settle()
			if answered != n+2 || len(r.h.seen) != n+2 {
				t.Fatalf("prolonged: %d answered, seen %v; want %d each", answered, r.h.seen, n+2)
			}
		}
	})
}

// leasedRig is a rig whose claim is certain for a second, with a counter.
func leasedRig(t *testing.T) (*rig, *leasing, uint64) {
	r := newRig(t, Options{})
	j := &leasing{until: time.Now().Add(time.Second)}
	r.wrap = func(w journal.Journal) journal.Journal { j.Journal = w; return j }
	r.crash(1)
	return r, j, r.define()
}

// TestReplyWaitsForTheLease: a command that writes nothing is not answered if the lease
// has ended while its step was under way, but when the lease is prolonged.
func TestReplyWaitsForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, j, _ := leasedRig(t)
		answered := 0
		r.do(func(*counterHost) { time.Sleep(2 * time.Second) }, func() { answered++ })
		r.settle()
		if answered != 0 {
			t.Fatal("answered after the lease")
		}
		j.until = time.Now().Add(time.Second)
		j.tell()
		r.step()
		if answered != 1 {
			t.Fatalf("prolonged: %d answered, want 1", answered)
		}
	})
}

// TestNothingLeavesInTheStepThatLosesTheClaim: the journal says within a step that the
// claim has ended, after the step has looked.
func TestNothingLeavesInTheStepThatLosesTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, j, _ := leasedRig(t)
		answered := false
		r.do(func(h *counterHost) {
			h.held.Hold(h.tx, 0, "old")
			time.Sleep(2 * time.Second)
			j.last.Err = journal.ErrFenced
			j.tell()
		}, func() { answered = true })
		r.step()
		if answered || len(r.h.seen) > 0 {
			t.Errorf("without the claim: answered %t, seen %v", answered, r.h.seen)
		}
		r.e.Step(r.now)
		if !errors.Is(r.e.Failed(), journal.ErrFenced) {
			t.Errorf("failed with %v, want %v", r.e.Failed(), journal.ErrFenced)
		}
	})
}

// TestNothingLeavesWithTheLossOfTheClaim: the status that says that the claim has ended
// may say, too, that more is durable. The owner of the claim now acts on that.
func TestNothingLeavesWithTheLossOfTheClaim(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	var answer error
	released := false
	r.h.durable = func(Permit) { released = true }
	err := r.e.Submit(&funcCommand{
		Do:   func(*Tx) error { r.h.add(id, 0, 1, machine.Ref{}); return nil },
		Done: func(err error) { answer = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.step()
	if _, _, err := r.wal.Claim(t.Context(), 0); err != nil { // which makes it durable
		t.Fatal(err)
	}
	r.commit()
	if err := r.e.Run(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("Run: %v, want %v", err, journal.ErrFenced)
	}
	if !errors.Is(answer, journal.ErrFenced) || released {
		t.Errorf("answered %v, the host was given a permit: %t", answer, released)
	}
}

// TestFencedEngineStops: another owner has claimed the shard. Nothing is answered but
// with an error, and nothing that was held leaves.
func TestFencedEngineStops(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	var failed error
	err := r.e.Submit(&funcCommand{
		Do: func(*Tx) error {
			r.h.add(id, 0, 1, machine.Ref{})
			r.h.held.Hold(r.h.tx, Pending, "sum")
			return nil
		},
		Done: func(err error) { failed = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.wal.Claim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.e.Run(ctx); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("Run: %v, want %v", err, journal.ErrFenced)
	}
	if !errors.Is(failed, journal.ErrFenced) || !errors.Is(r.h.stopped, journal.ErrFenced) || len(r.h.seen) > 0 {
		t.Errorf("answered %v, stopped %v, seen %v", failed, r.h.stopped, r.h.seen)
	}
	if err := r.e.Submit(&funcCommand{Do: func(*Tx) error { return nil }}); !errors.Is(err, ErrMoved) {
		t.Errorf("Submit: %v, want %v", err, ErrMoved)
	}
}

// TestIdleEngineLearnsThatItIsFenced: it does not have to append to find out.
func TestIdleEngineLearnsThatItIsFenced(t *testing.T) {
	r := newRig(t, Options{})
	r.define()
	if _, _, err := r.wal.Claim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	r.commit()
	r.e.Step(r.now)
	if err := r.e.Failed(); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("failed with %v, want %v", err, journal.ErrFenced)
	}
}

// bodyFetch reads the body of a number of a counter.
type bodyFetch struct {
	ref  machine.Ref
	raw  []byte
	err  error
	done func(*bodyFetch)
}

func (f *bodyFetch) Size() int { return int(f.ref.Size) }
func (f *bodyFetch) AppendReads(reads []journal.Read) []journal.Read {
	return append(reads, ReadOf(f.ref))
}
func (f *bodyFetch) Read(reads []journal.Read) { f.raw, f.err = Body(&reads[0]) }
func (f *bodyFetch) Fetched(*Tx)               { f.done(f) }

// TestFetchReadsBesideTheEngine asks for bodies; the engine goes on meanwhile.
func TestFetchReadsBesideTheEngine(t *testing.T) {
	r := newRig(t, Options{})
	id := r.define()
	got := map[string]bool{}
	r.do(func(h *counterHost) {
		for i, text := range []string{"a", "bb", "ccc"} {
			ref, err := h.tx.StoreOne([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			h.add(id, i, 1, ref)
			h.tx.Fetch(&bodyFetch{ref: ref, done: func(f *bodyFetch) {
				if f.err != nil {
					t.Error(f.err)
				}
				got[string(f.raw)] = true
			}})
		}
	}, nil)
	r.step()
	r.step()
	if len(got) > 0 || len(r.background) != 1 {
		t.Fatalf("the engine has read %v, %d pieces of work", got, len(r.background))
	}
	r.settle()
	if len(got) != 3 || !got["ccc"] {
		t.Errorf("got %v", got)
	}
}

// TestRunServesAndStops runs an engine on its goroutine until its context ends.
func TestRunServesAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{})
		r.opts.Go = nil
		r.crash(1)
		ctx, cancel := context.WithCancel(t.Context())
		journalEnded, ended := make(chan error, 1), make(chan error, 1)
		walCtx, stopWAL := context.WithCancel(context.WithoutCancel(ctx))
		go func() { journalEnded <- r.wal.Run(walCtx) }()
		go func() { ended <- r.e.Run(ctx) }()
		answered := make(chan struct{})
		var id uint64
		r.do(func(h *counterHost) { id = h.define() }, func() { close(answered) })
		<-answered
		r.do(func(h *counterHost) { h.add(id, 3, 7, machine.Ref{}) }, nil)
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		stopWAL()
		<-journalEnded
		if !errors.Is(r.h.stopped, ErrStopped) {
			t.Errorf("stopped with %v", r.h.stopped)
		}
		r.crash(2)
		if got := r.h.counter(id).sums[3]; got != 7 {
			t.Errorf("recovered %d, want 7", got)
		}
	})
}
