// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// testbed is one processor at a hub in memory, with a store in memory.
type testbed struct {
	*Processor
	t      *testing.T
	hub    *fakeHub
	host   *host
	store  CheckpointStore
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	handled map[string][]client.SeqNo // by partition, as the handler saw them; guarded by mu
	errs    []error                   // guarded by mu
}

// newTestbed makes a processor in store mode that notes what it handles.
func newTestbed(t *testing.T, parts int) *testbed {
	b := &testbed{t: t, hub: newFakeHub(parts), store: NewMemoryStore(), handled: map[string][]client.SeqNo{}}
	b.host = b.hub.host()
	b.Processor = &Processor{
		Hub: "hub", ID: "one", Store: b.store, Strategy: Greedy, link: b.host, Log: slog.New(slog.DiscardHandler),
		OnError: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.errs = append(b.errs, err)
		},
		Handle: b.note,
	}
	return b
}

func (b *testbed) note(_ context.Context, p *Partition, events []*client.Received) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range events {
		b.handled[p.ID()] = append(b.handled[p.ID()], e.SeqNo)
	}
	return nil
}

func (b *testbed) start() {
	ctx, cancel := context.WithCancel(b.t.Context())
	b.cancel, b.ended = cancel, make(chan error, 1)
	go func() { b.ended <- b.Run(ctx) }()
	synctest.Wait()
}

func (b *testbed) stop() error {
	b.cancel()
	return <-b.ended
}

func (b *testbed) seen(partition string) []client.SeqNo {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.handled[partition]
}

func (b *testbed) told(kind error) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, err := range b.errs {
		if errors.Is(err, kind) {
			n++
		}
	}
	return n
}

// saved returns the checkpoint of a partition; none if there is none.
func (b *testbed) saved(partition string) client.SeqNo {
	list, err := b.store.ListCheckpoints(b.t.Context(), Scope{Hub: "hub", Group: defaultGroup})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range list {
		if c.Partition == partition {
			return c.SeqNo
		}
	}
	return none
}

// numbers returns those from first to last.
func numbers(first, last client.SeqNo) []client.SeqNo {
	var out []client.SeqNo
	for n := first; n <= last; n++ {
		out = append(out, n)
	}
	return out
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func TestEventsAreHandledInOrderAndSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		b.hub.publish(0, 250)
		b.start()
		equal(t, "handled", b.seen("0"), numbers(0, 249))
		equal(t, "checkpoint before the first second is over", b.saved("0"), none)
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "checkpoint", b.saved("0"), 249)
		b.hub.publish(1, 3)
		synctest.Wait()
		equal(t, "stop", b.stop(), nil)
		equal(t, "checkpoint after the stop", b.saved("1"), 2)
		owners, _, _ := b.store.ListOwnership(t.Context(), Scope{Hub: "hub", Group: defaultGroup})
		for _, o := range owners {
			equal(t, "owner of "+o.Partition+" after the stop", o.Owner, "")
		}
	})
}

func TestASecondRunGoesOnAfterTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.hub.publish(0, 5)
		b.start()
		equal(t, "stop", b.stop(), nil)
		b.hub.publish(0, 5)
		b.start()
		equal(t, "stop", b.stop(), nil)
		equal(t, "handled", b.seen("0"), numbers(0, 9))
	})
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		name    string
		policy  CheckpointPolicy
		batch   int
		at      time.Duration
		want    client.SeqNo
		stopped client.SeqNo
	}{
		{"every event", EveryEvent(), 0, 0, 9, 9},
		{"every 7 in batches of 3", EveryN(7), 3, 0, 8, 9}, // after nine; the tenth is alone
		{"every 5 s, early", Every(5 * time.Second), 0, 4 * time.Second, none, 9},
		{"every 5 s, late", Every(5 * time.Second), 0, 6 * time.Second, 9, 9},
		{"by hand", ByHand(), 0, time.Minute, none, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, 1)
				b.Checkpoint, b.Batch = c.policy, c.batch
				b.hub.publish(0, 10)
				b.start()
				time.Sleep(c.at)
				synctest.Wait()
				equal(t, "checkpoint", b.saved("0"), c.want)
				equal(t, "stop", b.stop(), nil)
				equal(t, "checkpoint after the stop", b.saved("0"), c.stopped)
			})
		})
	}
}

func TestCheckpointsByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Checkpoint = ByHand()
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			return p.Checkpoint(ctx, events[1])
		}
		b.hub.publish(0, 10)
		b.start()
		equal(t, "stop", b.stop(), nil)
		equal(t, "checkpoint", b.saved("0"), 1)
	})
}

func TestAsyncCheckpointsHaveNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Async = true
		var mu sync.Mutex
		var all []*client.Received
		var part *Partition
		b.Handle = func(_ context.Context, p *Partition, events []*client.Received) error {
			mu.Lock()
			defer mu.Unlock()
			all, part = append(all, events...), p
			return nil
		}
		b.hub.publish(0, 10)
		b.start()
		for _, n := range []int{9, 0, 2, 1, 5} {
			part.Done(all[n])
		}
		part.Done(all[0]) // again: no effect
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "checkpoint", b.saved("0"), 2)
		b.cancel()
		synctest.Wait()
		select {
		case <-b.ended:
			t.Fatal("Run returned although events are not done")
		default:
		}
		for _, e := range all {
			part.Done(e)
		}
		equal(t, "stop", <-b.ended, nil)
		equal(t, "checkpoint", b.saved("0"), 9)
		equal(t, "handled", b.Status().Handled, 0) // of a processor that does not run
	})
}

func TestFailedEventsAreTriedAgainThenDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.DeadLetter = "poison"
		calls := 0
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			for _, e := range events {
				if e.SeqNo == 3 {
					calls++
					if calls%2 == 0 {
						panic("three")
					}
					return errors.New("three")
				}
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 10)
		b.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), append(numbers(0, 2), numbers(4, 9)...))
		equal(t, "calls with the poison", calls, 6)
		equal(t, "told", b.told(ErrHandler), 6)
		letters := b.hub.letters()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		equal(t, "body", string(letters[0].Body), "0/3")
		equal(t, "ID", letters[0].ID, "hub/0/3")
		for name, want := range map[string]any{
			propertyHub: "hub", propertyGroup: defaultGroup, propertyPartition: "0", propertySeqNo: 3, propertyReason: reasonFailed,
		} {
			equal(t, name, letters[0].Properties[name], want)
		}
		s := b.Status()
		equal(t, "status", []uint64{s.Handled, s.Failed, s.DeadLettered, s.Panics}, []uint64{10, 6, 1, 3})
		equal(t, "stop", b.stop(), nil)
		equal(t, "checkpoint", b.saved("0"), 9)
	})
}

func TestWithoutADeadLetterQueueNothingIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		b.Batch = 1
		var healthy atomic.Bool
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if p.ID() == "0" && events[0].SeqNo == 3 && !healthy.Load() {
				return errors.New("three")
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 10)
		b.hub.publish(1, 10)
		b.start()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 2))
		equal(t, "handled of the other partition", b.seen("1"), numbers(0, 9))
		equal(t, "told", b.told(ErrHandler), 3)
		equal(t, "state", b.Status().Partitions[0].State, "cooling down")
		healthy.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 9))
		equal(t, "stop", b.stop(), nil)
	})
}

func TestADeadLetterQueueThatIsMissingSkipsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.DeadLetter, b.hub.noQueue = "poison", true
		b.Handle = func(context.Context, *Partition, []*client.Received) error { return errors.New("no") }
		b.hub.publish(0, 1)
		b.start()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		equal(t, "stop", b.stop(), nil)
		equal(t, "checkpoint", b.saved("0"), none)
		if b.told(client.ErrNotFound) == 0 {
			t.Error("nobody was told that the queue is missing")
		}
	})
}

func TestAHandlerThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		hang := make(chan struct{})
		var cause error
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if p.ID() == "0" {
				<-ctx.Done()
				cause = context.Cause(ctx)
				<-hang
			}
			return nil
		}
		b.hub.publish(0, 1)
		b.hub.publish(1, 1)
		b.start()
		began := time.Now()
		err := b.stop()
		if !errors.Is(err, ErrHandlerStuck) || !strings.Contains(err.Error(), "partition 0") {
			t.Errorf("stop: %v, want %v of partition 0", err, ErrHandlerStuck)
		}
		synctest.Wait()
		if took := time.Since(began); took < defaultGrace || took > defaultGrace+10*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		if !errors.Is(cause, ErrStopping) {
			t.Errorf("cause: %v, want %v", cause, ErrStopping)
		}
		equal(t, "checkpoint", b.saved("0"), none)
		equal(t, "checkpoint of the other", b.saved("1"), 0)
		close(hang)
		synctest.Wait()
		equal(t, "checkpoint after it returned", b.saved("0"), none)
	})
}

func TestPauseAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		b.Pause("0")
		b.hub.publish(0, 3)
		b.hub.publish(1, 3)
		b.start()
		equal(t, "handled", b.seen("0"), []client.SeqNo(nil))
		equal(t, "handled of the other", b.seen("1"), numbers(0, 2))
		equal(t, "state", b.Status().Partitions[0].State, "paused")
		time.Sleep(7 * time.Second)
		equal(t, "lag", b.Status().Partitions[0].Lag, 7*time.Second)
		b.Resume("0")
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 2))
		equal(t, "lag", b.Status().Partitions[0].Lag, time.Duration(0))
		equal(t, "stop", b.stop(), nil)
	})
}

func TestReleaseHasACoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Batch = 5
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if events[0].SeqNo == 0 {
				p.Release(time.Minute)
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 10)
		b.start()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 4))
		equal(t, "checkpoint", b.saved("0"), 4)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 9))
		equal(t, "stop", b.stop(), nil)
	})
}

func TestRewindOfAnOwnPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.hub.publish(0, 5)
		time.Sleep(time.Hour)
		b.hub.publish(0, 5)
		b.start()
		for _, c := range []struct {
			to   Position
			want []client.SeqNo
		}{
			{FromSequence(7), numbers(7, 9)},
			{Earliest(), numbers(0, 9)},
			{FromTime(time.Now().Add(-time.Minute)), numbers(5, 9)},
			{Latest(), nil},
		} {
			b.mu.Lock()
			b.handled["0"] = nil
			b.mu.Unlock()
			if err := b.Rewind(t.Context(), "0", c.to); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			equal(t, fmt.Sprint("handled after a rewind to ", c.to), b.seen("0"), c.want)
			equal(t, "checkpoint", b.saved("0"), 9)
		}
		if err := b.Rewind(t.Context(), "1", Earliest()); !errors.Is(err, ErrNotOwned) {
			t.Errorf("rewind of a partition that is not there: %v, want %v", err, ErrNotOwned)
		}
		equal(t, "stop", b.stop(), nil)
		if err := b.Rewind(t.Context(), "0", Earliest()); !errors.Is(err, ErrNotRunning) {
			t.Errorf("rewind after the stop: %v, want %v", err, ErrNotRunning)
		}
	})
}

func TestLatestIsANumberForTheNextOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Start = Latest()
		b.hub.publish(0, 5)
		b.start()
		equal(t, "stop", b.stop(), nil)
		b.hub.publish(0, 5) // while nobody runs
		b.start()
		equal(t, "stop", b.stop(), nil)
		equal(t, "handled", b.seen("0"), numbers(5, 9))
	})
}

func TestALostPartitionCancelsItsHandlerAndKeepsItsCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		var cause, late error
		b.Batch = 2
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if events[0].SeqNo == 0 {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			late = p.Checkpoint(context.WithoutCancel(ctx), events[0])
			return nil
		}
		b.hub.publish(0, 4)
		b.start()
		time.Sleep(2 * time.Second)
		claimed := claim(t, b.store, "other", "0")
		equal(t, "claims won", claimed, 1)
		if _, err := b.hub.host().open(t.Context(), "0", readerOptions{epoch: 0}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !errors.Is(cause, ErrLost) || !errors.Is(late, ErrLost) {
			t.Errorf("cause %v and late checkpoint %v, want %v", cause, late, ErrLost)
		}
		equal(t, "checkpoint", b.saved("0"), 1)
		equal(t, "stop", b.stop(), nil)
		equal(t, "checkpoint after the stop", b.saved("0"), 1)
	})
}

// claim takes partitions in a store on behalf of an owner, with the present ETags.
func claim(t *testing.T, s CheckpointStore, owner string, partitions ...string) int {
	t.Helper()
	list, _, err := s.ListOwnership(t.Context(), Scope{Hub: "hub", Group: defaultGroup})
	if err != nil {
		t.Fatal(err)
	}
	var claims []Ownership
	for _, p := range partitions {
		c := Ownership{Scope: Scope{Hub: "hub", Group: defaultGroup}, Partition: p}
		for _, o := range list {
			if o.Partition == p {
				c = o
			}
		}
		c.Owner = owner
		claims = append(claims, c)
	}
	won, err := s.ClaimOwnership(t.Context(), claims)
	if err != nil {
		t.Fatal(err)
	}
	return len(won)
}

func TestPrefetchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Prefetch, b.Batch = 20, 10
		hold := make(chan struct{})
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			<-hold
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 1000)
		b.start()
		if n := b.Status().Partitions[0].Waiting; n != 20 {
			t.Errorf("%d events wait, want 20", n)
		}
		close(hold)
		synctest.Wait()
		equal(t, "handled", b.seen("0"), numbers(0, 999))
		equal(t, "stop", b.stop(), nil)
	})
}

// EveryN counts the events that a checkpoint would cover, not those that are done behind one
// that is not.
func TestEveryNSavesWhenAGapCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Async, b.Checkpoint = true, EveryN(100)
		var mu sync.Mutex
		var all []*client.Received
		var part *Partition
		b.Handle = func(_ context.Context, p *Partition, events []*client.Received) error {
			mu.Lock()
			defer mu.Unlock()
			all, part = append(all, events...), p
			return nil
		}
		b.hub.publish(0, 1000)
		b.start()
		for _, e := range all[:123] {
			part.Done(e)
		}
		synctest.Wait()
		equal(t, "checkpoint", b.saved("0"), 122)
		for _, e := range all[124:] {
			part.Done(e)
		}
		synctest.Wait()
		equal(t, "checkpoint behind the gap", b.saved("0"), 122)
		part.Done(all[123])
		synctest.Wait()
		equal(t, "checkpoint after the gap has closed", b.saved("0"), 999)
		equal(t, "stop", b.stop(), nil)
	})
}
