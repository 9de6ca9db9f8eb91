// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
		outside, err := b.host.open(t.Context(), "0", Latest(), 1)
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
