// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/triagemq/triagemq/client"
)

// faultyLink is a host whose fleet has faults.
type faultyLink struct {
	*host
	fleet *faultyFleet
}

func (l *faultyLink) join(ctx context.Context, s *settings) (fleet, error) {
	f, err := l.host.join(ctx, s)
	if err != nil {
		return nil, err
	}
	l.fleet.fleet = f
	return l.fleet, nil
}

// faultyFleet fails as many requests as the counters say.
type faultyFleet struct {
	fleet
	releases, checkpoints atomic.Int32
	cut                   atomic.Bool // reports fail, and news do not come
	held                  atomic.Bool // news do not come, neither of the fleet nor of readers
}

func (l *faultyLink) open(ctx context.Context, partition string, o readerOptions) (reader, error) {
	r, err := l.host.open(ctx, partition, o)
	return &heldReader{r, l.fleet}, err
}

// heldReader is a reader whose end is not heard while its fleet is held.
type heldReader struct {
	reader
	fleet *faultyFleet
}

func (r *heldReader) receive(ctx context.Context, limit int) (stored, error) {
	events, err := r.reader.receive(ctx, limit)
	for err != nil && r.fleet.held.Load() && pause(ctx, time.Second) {
	}
	return events, err
}

func (f *faultyFleet) report(ctx context.Context, rs []report) (uint64, error) {
	if f.cut.Load() {
		return 0, errFault
	}
	return f.fleet.report(ctx, rs)
}

func (f *faultyFleet) next(ctx context.Context) (view, error) {
	v, err := f.fleet.next(ctx)
	for (f.cut.Load() || f.held.Load()) && pause(ctx, time.Second) {
	}
	return v, err
}

var errFault = errors.New("fake: no answer")

func (f *faultyFleet) release(ctx context.Context, g grant, coolDown time.Duration) error {
	if f.releases.Add(-1) >= 0 {
		return errFault
	}
	return f.fleet.release(ctx, g, coolDown)
}

func (f *faultyFleet) checkpoint(ctx context.Context, ms []mark) ([]error, error) {
	if f.checkpoints.Add(-1) >= 0 {
		return nil, errFault
	}
	return f.fleet.checkpoint(ctx, ms)
}

// coordinated makes the testbed one that a coordinator gives partitions to.
func (b *testbed) coordinated() *faultyFleet {
	f := &faultyFleet{}
	c := b.hub.coordinate()
	b.t.Cleanup(c.stop)
	b.Store, b.Strategy, b.link = nil, Balanced, &faultyLink{b.host, f}
	return f
}

// A request that fails must not leave a partition with an owner who does nothing.
func TestAReleaseThatFailsIsTriedAgain(t *testing.T) {
	for _, fault := range []struct {
		name                  string
		releases, checkpoints int32
	}{{"release", 3, 0}, {"checkpoint", 0, 3}, {"checkpoint for a minute", 0, 60}} {
		t.Run(fault.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, 1)
				f := b.coordinated()
				b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
					if events[0].SeqNo == 0 {
						f.releases.Store(fault.releases)
						f.checkpoints.Store(fault.checkpoints)
						p.Release(0)
					}
					return b.note(ctx, p, events)
				}
				b.start()
				b.hub.publish(0, 5)
				elapse(5 * time.Minute)
				b.hub.publish(0, 5)
				elapse(time.Minute)
				equal(t, "handled", b.seen("0"), numbers(0, 9))
				equal(t, "stop", b.stop(), nil)
			})
		})
	}
}

// A reader with a higher epoch that is none of the group's makes the owner give up.
func TestAStolenPartitionComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		f := b.coordinated()
		b.start()
		b.hub.publish(0, 5)
		elapse(5 * time.Second)
		f.checkpoints.Store(1)
		outside, err := b.host.open(t.Context(), "0", readerOptions{at: Latest(), epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		elapse(time.Second)
		outside.Close()
		b.hub.publish(0, 5)
		elapse(time.Minute)
		equal(t, "handled", b.seen("0"), numbers(0, 9))
		equal(t, "stop", b.stop(), nil)
	})
}

// The epochs of a group that is deleted and made again begin anew.
func TestAGroupThatIsMadeAnewIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.coordinated()
		b.start()
		elapse(time.Second)
		for range 5 {
			if err := b.Rewind(t.Context(), "0", Earliest()); err != nil {
				t.Fatal(err)
			}
			elapse(time.Second)
		}
		c := b.hub.coord
		c.do(func(time.Time) { c.groups.Forget(fakeGroup, &c.out) })
		elapse(5 * time.Second)
		b.hub.publish(0, 5)
		elapse(5 * time.Second)
		equal(t, "handled", b.seen("0"), numbers(0, 4))
		equal(t, "stop", b.stop(), nil)
	})
}

// Where Latest is must be the same for the next owner, however soon the first one is gone.
func TestLatestSkipsNothingAfterACrash(t *testing.T) {
	for _, policy := range []CheckpointPolicy{EveryBatch(), EveryN(100), ByHand()} {
		for _, before := range []int{0, 5} {
			for _, withStore := range []bool{true, false} {
				t.Run(fmt.Sprint(policy.kind, before, withStore), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b := newTestbed(t, 1)
						if !withStore {
							b.coordinated()
						}
						b.Start, b.Checkpoint = Latest(), policy
						b.hub.publish(0, before)
						b.start()
						for b.hub.reader(0) == nil {
							elapse(time.Millisecond)
						}
						b.host.crash() // before it has handled anything
						b.hub.publish(0, 5)
						b.stop()
						next := &testbed{Processor: &Processor{
							Hub: b.Hub, ID: "two", Store: b.Store, Strategy: b.Strategy, link: b.hub.host(), Log: b.Log,
							OnError: b.OnError, Handle: b.Handle, Start: Latest(), Checkpoint: policy,
						}, t: t}
						next.start()
						elapse(5 * time.Minute)
						equal(t, "handled", b.seen("0"), numbers(client.SeqNo(before), client.SeqNo(before)+4))
						equal(t, "stop", next.stop(), nil)
					})
				})
			}
		}
	}
}

// reader returns the last reader of a partition.
func (h *fakeHub) reader(part int) *fakeReader {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readers[part]
}

// The end to which a partition is wound is that of the call, however long its handler goes
// on.
func TestRewindToLatestSkipsNothingThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		goOn := make(chan struct{})
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if events[0].SeqNo == 0 {
				<-goOn
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 5)
		b.start()
		if err := b.Rewind(t.Context(), "0", Latest()); err != nil {
			t.Fatal(err)
		}
		elapse(time.Second)
		b.hub.publish(0, 5)
		close(goOn)
		elapse(time.Minute)
		equal(t, "handled", b.seen("0"), numbers(0, 9))
		equal(t, "stop", b.stop(), nil)
	})
}

func TestABackgroundSaveThatFailsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Store = &brokenStore{CheckpointStore: b.store, set: errFault}
		b.hub.publish(0, 1)
		b.start()
		elapse(5 * time.Second)
		if b.told(errFault) == 0 {
			t.Error("a store that takes no checkpoints: OnError was not called")
		}
		b.cancel()
		<-b.ended
	})
}

// brokenStore fails as its fields say.
type brokenStore struct {
	CheckpointStore
	set, list error
	claims    string               // the partition whose claims fail
	sets      func(n client.SeqNo) // called before a checkpoint is written
	hangs     string               // the partition whose checkpoints get no answer
}

func (s *brokenStore) SetCheckpoint(ctx context.Context, c Checkpoint) error {
	if s.sets != nil {
		s.sets(c.SeqNo)
	}
	if c.Partition == s.hangs {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if s.set != nil {
		return s.set
	}
	return s.CheckpointStore.SetCheckpoint(ctx, c)
}

func (s *brokenStore) ListCheckpoints(ctx context.Context, scope Scope) ([]Checkpoint, error) {
	list, err := s.CheckpointStore.ListCheckpoints(ctx, scope)
	return list, errors.Join(err, s.list)
}

func (s *brokenStore) ClaimOwnership(ctx context.Context, claims []Ownership) ([]Ownership, error) {
	var good []Ownership
	var err error
	for _, c := range claims {
		if c.Partition == s.claims {
			err = errFault
		} else {
			good = append(good, c)
		}
	}
	won, other := s.CheckpointStore.ClaimOwnership(ctx, good)
	return won, errors.Join(err, other)
}

// A record that cannot be claimed, or read, stops no other partition.
func TestOneBadRecordStopsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 3)
		if err := b.store.SetCheckpoint(t.Context(), Checkpoint{Scope: Scope{Hub: "hub", Group: defaultGroup}, Partition: "1", SeqNo: 1}); err != nil {
			t.Fatal(err)
		}
		b.Store = &brokenStore{CheckpointStore: b.store, claims: "0", list: errFault}
		for part := range 3 {
			b.hub.publish(part, 5)
		}
		b.start()
		elapse(5 * time.Minute)
		equal(t, "handled of the one that cannot be claimed", b.seen("0"), numbers(0, -1))
		equal(t, "handled of one with a checkpoint", b.seen("1"), numbers(2, 4))
		equal(t, "handled of one whose checkpoint may be the one that cannot be read", b.seen("2"), numbers(0, -1))
		equal(t, "stop", b.stop(), nil)
	})
}

// Somebody else has the partition of an instance that cannot reach the broker.
func TestAFailingHandlerIsNotCalledWithoutContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		f := b.coordinated()
		var last atomic.Pointer[time.Time]
		b.CoolDown, b.Batch = time.Second, 1
		b.Handle = func(context.Context, *Partition, []*client.Received) error {
			now := time.Now()
			last.Store(&now)
			return errFault
		}
		b.hub.publish(0, 1)
		b.start()
		elapse(30 * time.Second)
		began := time.Now()
		f.cut.Store(true)
		elapse(time.Minute)
		synctest.Wait()
		if d := last.Load().Sub(began); d > 10*time.Second {
			t.Errorf("the handler was called %v after the last contact", d)
		}
		f.cut.Store(false)
		elapse(time.Minute)
		synctest.Wait()
		if d := time.Since(*last.Load()); d > 20*time.Second {
			t.Errorf("the handler was not called for %v after the broker was back", d)
		}
		equal(t, "stop", b.stop(), nil)
	})
}

// The race detector sees it if this fails.
func TestRewindWhileItJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		b.cancel, b.ended = cancel, make(chan error, 1)
		go func() { b.ended <- b.Run(ctx) }()
		for errors.Is(b.Rewind(ctx, "0", Earliest()), ErrNotRunning) {
			runtime.Gosched()
		}
		equal(t, "stop", b.stop(), nil)
	})
}

// A checkpoint that is being written when a rewind comes must not come after it.
func TestARewindIsNotUndoneByASaveThatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Store = &brokenStore{CheckpointStore: b.store, sets: func(n client.SeqNo) {
			if n == 9 {
				elapse(5 * time.Second)
			}
		}}
		var crashed atomic.Bool
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if crashed.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 10)
		b.start()
		elapse(time.Second + time.Millisecond) // the save has begun
		crashed.Store(true)
		if err := b.Rewind(t.Context(), "0", FromSequence(3)); err != nil {
			t.Fatal(err)
		}
		elapse(10 * time.Second)
		equal(t, "checkpoint", b.saved("0"), 2)
		b.host.crash()
		b.stop()
	})
}

// An event that is never done must not let the list of those behind it grow without end.
func TestAsyncGapIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		var first *client.Received
		var part *Partition
		begun := 0
		b.Async = true
		b.Handle = func(_ context.Context, p *Partition, events []*client.Received) error {
			begun += len(events)
			for _, e := range events {
				if e.SeqNo == 0 {
					first, part = e, p
				} else {
					p.Done(e)
				}
			}
			return nil
		}
		b.hub.publish(0, maxGap+5000)
		b.start()
		if begun > maxGap+1000 {
			t.Errorf("%d events were begun behind one that is not done", begun)
		}
		part.Done(first)
		synctest.Wait()
		equal(t, "events", begun, maxGap+5000)
		equal(t, "stop", b.stop(), nil)
	})
}

// An instance whose place another has taken stops its handlers.
func TestAHandlerEndsWhenTheIDIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.coordinated()
		var ended time.Time
		b.Batch, b.Prefetch = 1, 1
		b.Handle = func(ctx context.Context, _ *Partition, _ []*client.Received) error {
			<-ctx.Done()
			ended = time.Now()
			return context.Cause(ctx)
		}
		b.hub.publish(0, 100)
		b.start()
		elapse(5 * time.Second)
		began := time.Now()
		if _, err := b.hub.coord.join(t.Context(), b.hub.host(), &settings{id: b.ID}); err != nil {
			t.Fatal(err)
		}
		if err := <-b.ended; !errors.Is(err, client.ErrTaken) {
			t.Errorf("Run: %v, want %v", err, client.ErrTaken)
		}
		if d := ended.Sub(began); d > time.Second {
			t.Errorf("the handler went on for %v", d)
		}
	})
}

// A text that is no UTF-8, or an id that is too long, cannot be sent, and its event
// would be tried without end.
func TestADeadLetterCanBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.DeadLetter, b.Hub = "dead", strings.Repeat("h", 200)
		b.Handle = func(context.Context, *Partition, []*client.Received) error {
			return errors.New("\xff" + strings.Repeat("ä", maxDescription))
		}
		b.hub.publish(0, 1)
		b.start()
		elapse(time.Minute)
		letters := b.hub.letters()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if text := letters[0].Properties[propertyDescription].(string); !utf8.ValidString(text) || len(text) < maxDescription/2 {
			t.Errorf("the description of a dead letter is %.10q", text)
		}
		if n := len(letters[0].ID); n == 0 || n > maxLetterID {
			t.Errorf("the id of a dead letter has %d bytes", n)
		}
		equal(t, "stop", b.stop(), nil)
	})
}

// What is granted to an instance that leaves goes on at once, though it has other handlers
// that take their time.
func TestAGrantThatComesTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		b.coordinated()
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if p.ID() == "0" {
				elapse(20 * time.Second)
			} else if events[0].SeqNo == 0 {
				elapse(time.Second)
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 1)
		b.start()
		elapse(5 * time.Second)
		b.hub.publish(1, 1)
		synctest.Wait()
		if err := b.Rewind(t.Context(), "1", Earliest()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.cancel()
		next := &testbed{Processor: &Processor{Hub: b.Hub, ID: "two", link: b.hub.host(), Log: b.Log, OnError: b.OnError,
			Handle: func(ctx context.Context, p *Partition, events []*client.Received) error {
				return b.note(ctx, p, events)
			},
		}, t: t}
		next.start()
		elapse(5 * time.Second)
		equal(t, "handled of the partition that was granted late", b.seen("1"), "[0 0]")
		equal(t, "stop", <-b.ended, nil)
		equal(t, "stop", next.stop(), nil)
	})
}

// A request that gets no answer keeps no other partition from being saved or released.
func TestAStoreThatHangsForOnePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 2)
		b.Store = &brokenStore{CheckpointStore: b.store, hangs: "0"}
		b.start()
		for range 10 {
			b.hub.publish(0, 1)
			b.hub.publish(1, 1)
			elapse(time.Minute)
		}
		if n := b.saved("1"); n < 5 {
			t.Errorf("the checkpoint of the other partition is %d, want 5 at least", n)
		}
		b.cancel()
		<-b.ended
	})
}

// An instance that the broker had given up joins again and reports, and hears only then that
// its partitions are another's. Its handlers begin nothing in between.
func TestNothingIsBegunBetweenRejoinAndAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		f := b.coordinated()
		b.Batch = 1
		var first atomic.Pointer[[]client.SeqNo]
		first.Store(&[]client.SeqNo{})
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if p.pump.run.settings.id != b.ID {
				return b.note(ctx, p, events)
			}
			seen := append(*first.Load(), events[0].SeqNo)
			first.Store(&seen)
			if events[0].SeqNo == 1 {
				f.cut.Store(true)
				f.held.Store(true)
				elapse(11 * time.Second)
				f.cut.Store(false)
				elapse(4 * time.Second) // there is a report, and it is good
			}
			return nil
		}
		b.start()
		elapse(time.Second)
		b.hub.publish(0, 10)
		two := b.another("two")
		elapse(20 * time.Second)
		equal(t, "events that the other has handled", b.seen("0"), numbers(1, 9))
		equal(t, "events that the one that was away has begun", *first.Load(), numbers(0, 1))
		f.held.Store(false)
		elapse(time.Minute)
		b.hub.publish(0, 1)
		elapse(time.Minute)
		equal(t, "events in the end", len(b.seen("0"))+len(*first.Load()), 12)
		equal(t, "partitions", len(two.Status().Partitions)+len(b.Status().Partitions), 1)
		equal(t, "stop", b.stop(), nil)
	})
}
