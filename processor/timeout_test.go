// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// another starts a second processor at the same hub, which notes what it handles in the same
// place. It stops with the test.
func (b *testbed) another(id string) *Processor {
	p := &Processor{
		Hub: "hub", ID: id, Store: b.Store, Strategy: b.Strategy, Interval: b.Interval, link: b.hub.host(),
		Log: b.Log, OnError: b.OnError, Handle: b.Handle, Batch: b.Batch, Timeout: b.Timeout,
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	stop := b.cancel
	b.cancel = func() {
		cancel()
		equal(b.t, "stop of "+id, <-ended, nil)
		stop()
	}
	return p
}

// The partition of a handler that never returns moves by itself, without a repeated event.
func TestAHandlerThatTimesOutLosesItsPartition(t *testing.T) {
	for _, mode := range []string{"coordinator", "store"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, 2)
				b.Interval = time.Second
				if mode == "coordinator" {
					b.Interval = 0
					b.coordinated()
				}
				b.Timeout, b.Batch = 10*time.Second, 5
				hang := make(chan struct{})
				var hangs atomic.Bool
				cause := make(chan error, 1)
				b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
					if p.ID() == "0" && events[0].SeqNo == 5 && hangs.CompareAndSwap(false, true) {
						<-ctx.Done()
						cause <- context.Cause(ctx)
						<-hang
						return errors.New("too late")
					}
					return b.note(ctx, p, events)
				}
				b.start()
				b.another("two")
				elapse(10 * time.Second)
				b.hub.publish(0, 20)
				b.hub.publish(1, 20)
				elapse(14 * time.Second)
				equal(t, "handled before the time is over", b.seen("0"), numbers(0, 4))
				elapse(6 * time.Second)
				equal(t, "handled", b.seen("0"), numbers(0, 19))
				equal(t, "handled of the other partition", b.seen("1"), numbers(0, 19))
				equal(t, "told of a handler that is stuck", b.told(ErrHandlerStuck), 1)
				if err := <-cause; !errors.Is(err, ErrTimeout) {
					t.Errorf("cause %v, want %v", err, ErrTimeout)
				}
				elapse(10 * time.Minute) // it is not stuck anew whenever it gets the partition
				close(hang)
				b.hub.publish(0, 20)
				elapse(10 * time.Minute)
				equal(t, "handled", b.seen("0"), numbers(0, 39))
				equal(t, "told of failures", b.told(ErrHandler), 0)
				equal(t, "stop", b.stop(), nil)
			})
		})
	}
}

// An instance alone does not run two handlers of a partition: it waits until the one that is
// stuck has returned, and goes on then.
func TestATimeOutWithoutAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.coordinated()
		b.Timeout, b.Batch = time.Second, 5
		hang := make(chan struct{})
		var calls atomic.Int32
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if calls.Add(1) == 1 {
				<-hang
				return nil // its events are done, but it is too late to save that
			}
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 10)
		b.start()
		elapse(time.Hour)
		equal(t, "calls while one is stuck", calls.Load(), 1)
		equal(t, "told", b.told(ErrHandlerStuck), 1)
		close(hang)
		elapse(2 * time.Minute)
		equal(t, "handled", b.seen("0"), numbers(0, 9))
		equal(t, "stop", b.stop(), nil)
	})
}

// A handler that heeds its context has failed when its time is over, if it says so.
func TestATimeOutIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.Timeout, b.DeadLetter = time.Second, "poison"
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			switch {
			case len(events) == 1 && events[0].SeqNo == 3:
				<-ctx.Done()
				return ctx.Err()
			case len(events) > 1:
				<-ctx.Done()
				elapse(4 * time.Second)
				if events[0].SeqNo == 0 {
					return errors.New("slow")
				}
			}
			return b.note(ctx, p, events) // late, but done
		}
		b.hub.publish(0, 10)
		b.start()
		elapse(time.Minute)
		b.hub.publish(0, 10)
		elapse(time.Minute)
		equal(t, "handled", b.seen("0"), append(numbers(0, 2), numbers(4, 19)...))
		equal(t, "dead letters", len(b.hub.letters()), 1)
		equal(t, "told", []int{b.told(ErrTimeout), b.told(ErrHandler), b.told(ErrHandlerStuck)}, []int{6, 6, 0})
		equal(t, "stop", b.stop(), nil)
	})
}
