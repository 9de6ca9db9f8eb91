// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

// gaps returns what OnError was told about gaps.
func (b *testbed) gaps() (out []GapError) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, err := range b.errs {
		if g, ok := errors.AsType[*GapError](err); ok && errors.Is(err, ErrGap) {
			out = append(out, *g)
		}
	}
	return out
}

// Events that are older than the retention when their turn comes are not skipped in silence.
func TestAGapIsTold(t *testing.T) {
	for _, mode := range []string{"coordinator", "store"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, 1)
				if mode == "coordinator" {
					b.coordinated()
				}
				b.hub.publish(0, 100)
				b.start()
				elapse(2 * time.Second)
				equal(t, "stop", b.stop(), nil)
				b.hub.publish(0, 40_000)
				b.hub.expire(0, 39_600)
				elapse(time.Minute) // the broker forgets the first run
				b.start()
				elapse(5 * time.Second)
				equal(t, "handled", b.seen("0"), append(numbers(0, 99), numbers(39_600, 40_099)...))
				want := GapError{Hub: "hub", Group: defaultGroup, Partition: "0", After: 99, Next: 39_600}
				equal(t, "gaps", b.gaps(), []GapError{want})
				equal(t, "events", want.Events(), 39_500)
				equal(t, "skipped", b.Status().Skipped, 39_500)
				if b.hub.coord != nil {
					p := b.hub.coord.info().Partitions[0]
					equal(t, "skipped and handled, as the broker has heard", []any{p.Skipped, p.Handled}, []any{39_500, 40_099})
				}
				equal(t, "stop", b.stop(), nil)
			})
		})
	}
}

// A handler that is slower than the retention meets the gap in the middle of its work, and
// no call of it has events from both sides.
func TestAGapWhileTheProcessorRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, 1)
		b.coordinated()
		b.Batch, b.Prefetch = 10, 15
		b.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
			if first, last := events[0].SeqNo, events[len(events)-1].SeqNo; last-first != client.SeqNo(len(events)-1) {
				t.Errorf("%d events from %d to %d in one call", len(events), first, last)
			}
			elapse(time.Second)
			return b.note(ctx, p, events)
		}
		b.hub.publish(0, 100)
		b.start()
		elapse(500 * time.Millisecond)
		b.hub.expire(0, 60)
		elapse(time.Minute)
		seen := b.seen("0")
		gaps := b.gaps()
		if len(gaps) != 1 || gaps[0].Next != 60 || int(gaps[0].Events()) != 100-len(seen) || gaps[0].After >= 59 {
			t.Errorf("%d of 100 events were handled, and the gaps are %+v", len(seen), gaps)
		}
		equal(t, "stop", b.stop(), nil)
	})
}

// With StandStill nothing behind the gap is handled, by nobody, until somebody decides.
func TestStandStillAtAGap(t *testing.T) {
	for _, mode := range []string{"coordinator", "store"} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, 2)
				b.AtGap = StandStill
				if mode == "coordinator" {
					b.coordinated()
				}
				b.hub.publish(0, 10)
				b.start()
				elapse(2 * time.Second)
				for range 2 { // neither does the next run
					equal(t, "stop", b.stop(), nil)
					b.hub.publish(0, 10)
					b.hub.expire(0, 15)
					elapse(time.Minute)
					b.start()
					b.hub.publish(1, 5)
					elapse(5 * time.Minute)
				}
				equal(t, "handled", b.seen("0"), numbers(0, 9))
				equal(t, "handled of the other partition", b.seen("1"), numbers(0, 9))
				want := GapError{Hub: "hub", Group: defaultGroup, Partition: "0", After: 9, Next: 15, StandsStill: true}
				equal(t, "gaps", b.gaps(), []GapError{want, want})
				equal(t, "state", b.Status().Partitions[0].State, "gap")
				equal(t, "skipped", b.Status().Skipped, 0)
				equal(t, "rewind", b.Rewind(t.Context(), "0", FromSequence(15)), nil)
				elapse(time.Minute)
				equal(t, "handled", b.seen("0"), append(numbers(0, 9), numbers(15, 29)...))
				equal(t, "state", b.Status().Partitions[0].State, "running")
				equal(t, "stop", b.stop(), nil)
			})
		})
	}
}

// Where somebody asks to begin there is no gap: with the oldest event, at a time, or at a
// number that is gone.
func TestAStartIsNoGap(t *testing.T) {
	for _, at := range []Position{Earliest(), FromSequence(3), FromTime(time.Unix(0, 0))} {
		synctest.Test(t, func(t *testing.T) {
			b := newTestbed(t, 1)
			b.Start = at
			b.hub.publish(0, 10)
			b.hub.expire(0, 5)
			b.start()
			elapse(time.Second)
			equal(t, "handled", b.seen("0"), numbers(5, 9))
			equal(t, "gaps", len(b.gaps()), 0)
			b.hub.publish(0, 10)
			elapse(time.Second)
			b.hub.expire(0, 15)
			equal(t, "rewind", b.Rewind(t.Context(), "0", at), nil)
			elapse(time.Minute)
			equal(t, "gaps after a rewind", len(b.gaps()), 0)
			equal(t, "stop", b.stop(), nil)
		})
	}
}
