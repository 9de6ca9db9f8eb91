// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/stream"
)

// idle lets time pass, in steps.
func (r *rig) idle(d time.Duration) {
	r.t.Helper()
	for until := r.now.Add(d); r.now.Before(until); {
		r.now = r.now.Add(min(d, time.Second))
		r.step()
		r.work()
		r.commit()
	}
	r.settle()
}

func (r *rig) info(p int) PartitionInfo {
	r.t.Helper()
	i, err := run(r, func() (PartitionInfo, error) { return r.h.Partition(r.t.Context(), p) })
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

func TestEventsLiveAsLongAsTheyShould(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2, RetainFor: time.Minute})
	at := map[stream.SeqNo]time.Time{}
	for i := range 1200 {
		n := r.append(i%2, 1, 700)
		at[n] = r.now
		r.now = r.now.Add(500 * time.Millisecond)
		r.check()
		if i%100 != 99 {
			continue
		}
		first := r.info(0).First
		if first > 0 && r.now.Sub(at[first-1]) < time.Minute {
			t.Fatalf("event %d is gone after %v", first-1, r.now.Sub(at[first-1]))
		}
		if age := r.now.Sub(at[first]); age > 2*time.Minute {
			t.Fatalf("event %d is there after %v", first, age)
		}
	}
	// 120 batches of 700 bytes live, which are less than two segments.
	if n := r.wal.Stats().Segments; n > 8 {
		t.Errorf("%d segments", n)
	}
	r.idle(3 * time.Minute)
	if i := r.info(0); i.First != 600 || i.Last != 599 || i.Bytes != 0 || i.LastTime.IsZero() {
		t.Errorf("%+v after everything has expired", i)
	}
	if n := r.wal.Stats().Segments; n > 2 {
		t.Errorf("%d segments of an empty hub", n)
	}
	r.crash(1)
	if i := r.info(1); i.First != 600 || i.Last != 599 {
		t.Errorf("%+v after a crash", i)
	}
}

func TestPartitionsStayBelowTheirSize(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1, RetainBytes: 200_000})
	for range 1000 {
		r.append(0, 1, 900)
		if n := r.info(0).Bytes; n > 200_000 {
			t.Fatalf("%d bytes", n)
		}
	}
	if n := r.info(0).Bytes; n < 100_000 {
		t.Errorf("%d bytes are left of 200,000", n)
	}
	if n := r.wal.Stats().Segments; n > 10 {
		t.Errorf("%d segments", n)
	}
	x := r.reader(ReaderOptions{})
	r.drain(x, r.info(0).First)
}

// A hub of which nothing expires is not looked at, and a timer is not set.
func TestRetentionWithoutEnd(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.append(0, 1, 10)
	r.idle(24 * time.Hour / 3600)
	if _, ok := r.h.partitions[0].m.NextDeadline(); ok {
		t.Error("there is a deadline")
	}
}

// A reader goes on with the oldest event when the ones before it are gone, wherever it was:
// in a block, in one whose index it has read, or about to read what it was told.
func TestRetentionOvertakesAReader(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1, RetainFor: time.Minute})
	fill := func() {
		for range 300 {
			r.append(0, 2, 800)
		}
	}
	fill()
	started, answered, fresh := r.reader(ReaderOptions{}), r.reader(ReaderOptions{}), r.reader(ReaderOptions{})
	if got, _ := r.next(started, 5000); len(got) != 6 {
		t.Fatalf("%d batches", len(got))
	}
	if _, err := run(r, func() (int, error) { return 0, answered.Wait(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	r.idle(2 * time.Minute)
	fill()
	r.idle(time.Second)
	first := r.info(0).First
	if first != 600 {
		t.Fatalf("the oldest event is %d", first)
	}
	for _, x := range []*Reader{started, answered, fresh} {
		if end := r.drain(x, first); end != 1200 {
			t.Errorf("read up to %d", end)
		}
	}
	if len(r.damages) > 0 {
		t.Errorf("damages %v", r.damages)
	}
}

func TestRetentionIsChangedLive(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	for range 100 {
		r.append(0, 1, 1000)
		r.now = r.now.Add(time.Second)
	}
	configure := func(set Settings) error {
		_, err := run(r, func() (int, error) { return 0, r.h.Configure(t.Context(), set) })
		return err
	}
	if err := configure(Settings{Partitions: 1, RetainFor: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if first := r.info(0).First; first < 20 || first > 81 {
		t.Errorf("the oldest event is %d", first)
	}
	if err := configure(Settings{Partitions: 3, RetainBytes: 10_000}); err != nil {
		t.Fatal(err)
	}
	if n := r.info(0).Bytes; n > 10_000 {
		t.Errorf("%d bytes", n)
	}
	r.append(2, 1, 10)
	if err := configure(Settings{Partitions: 2}); err == nil {
		t.Error("a partition was removed")
	}
	r.set.Partitions = 1
	r.crash(3)
	r.settle()
	if i := r.info(2); i.Last != 0 {
		t.Errorf("a partition that was added: %+v", i)
	}
}

// counting counts what a replay reads.
type counting struct {
	journal.Journal
	bytes, records int
}

func (c *counting) Claim(ctx context.Context, shards ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	claims, records, err := c.Journal.Claim(ctx, shards...)
	return claims, func(yield func(journal.Record, error) bool) {
		for rec, err := range records {
			c.records++
			c.bytes += len(rec.Payload)
			if !yield(rec, err) {
				return
			}
		}
	}, err
}

func TestRecoveryReadsAboutOneSegment(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	var c *counting
	r.wrap = func(j journal.Journal) journal.Journal {
		c = &counting{Journal: j}
		return c
	}
	for segments := range 4 {
		for range 100 * segments {
			for p := range 4 {
				r.append(p, 3, 1500)
			}
		}
		kept := r.wal.Stats().Segments
		r.crash(uint64(segments))
		if want := 2*segmentSize + int(r.h.Engine.Manual().View().Live/50); c.bytes > want {
			t.Errorf("%d bytes in %d records are replayed, of %d segments", c.bytes, c.records, kept)
		}
	}
	if n := r.wal.Stats().Segments; n < 40 {
		t.Errorf("only %d segments", n)
	}
	for p := range 4 {
		if end := r.drain(r.reader(ReaderOptions{Partition: p}), 0); end != 1800 {
			t.Errorf("read up to %d", end)
		}
	}
}

// One event is stored while the clock is 400 days ahead. After a start with the right clock
// later events have the right time, readers find them by it, and all of them expire in time.
func TestAClockThatWasAheadLeavesNoTrace(t *testing.T) {
	for _, later := range []bool{false, true} {
		r := newRig(t, Settings{Partitions: 1, RetainFor: time.Minute})
		right := r.now
		r.append(0, 1, 100)
		r.now = r.now.Add(400 * 24 * time.Hour)
		r.append(0, 1, 100)
		r.now = right.Add(time.Second)
		r.crash(1)
		r.settle()
		if later {
			seq := r.append(0, 1, 100)
			x := r.reader(ReaderOptions{Partition: 0, Group: "g", From: stream.FromTime(right.Add(500 * time.Millisecond))})
			var got []Batch
			for n := 0; n < 3 && (len(got) == 0 || got[len(got)-1].First < seq); n++ {
				more, err := r.next(x, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range more {
					got = append(got, Batch{First: b.First, At: b.At})
				}
			}
			if n := len(got); n == 0 || got[n-1].First != seq || got[n-1].At.Sub(right) > time.Minute {
				t.Errorf("events by time: %v", got)
			}
			x.Close()
		}
		r.idle(3 * time.Minute)
		if i := r.info(0); i.First != i.Last+1 || i.Bytes != 0 {
			t.Errorf("later %t: events %d to %d are there after the retention", later, i.First, i.Last)
		}
	}
}

// Events that retention has dropped before they were handled are not in the lag, and it says
// how many they are.
func TestTheLagTellsOfEventsThatAreGone(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2, RetainBytes: 100_000})
	lag := func(n int) GroupPartition {
		t.Helper()
		i, err := run(r, func() (GroupInfo, error) { return r.h.Group(t.Context(), "g") })
		if err != nil {
			t.Fatal(err)
		}
		return i.Partitions[n]
	}
	want := func(what string, p GroupPartition, gone, events int64) {
		t.Helper()
		if p.Gone != gone || p.LagEvents != events {
			t.Errorf("%s: %d events are gone and %d are behind, want %d and %d", what, p.Gone, p.LagEvents, gone, events)
		}
	}
	a := r.join("a", "1")
	r.pass(window)
	r.append(0, 20, 1000)
	if err := r.checkpoint(0, 1, 9); err != nil {
		t.Fatal(err)
	}
	want("nothing has expired", lag(0), 0, 10)
	for range 50 {
		r.append(0, 10, 10_000)
	}
	first := int64(r.info(0).First)
	if first < 20 {
		t.Fatalf("first event %d: nothing has expired", first)
	}
	want("behind the retention", lag(0), first-10, 520-first)
	want("without a checkpoint", lag(1), 0, 0)
	a.Report(Report{Handled: []group.Progress{{Partition: 0, Epoch: 1, Handled: stream.SeqNo(first) + 4, Skipped: uint64(first - 10)}}})
	r.settle()
	want("the owner has passed the gap", lag(0), 0, 515-first)
	if p := lag(0); p.Skipped != uint64(first-10) {
		t.Errorf("%d events were skipped, want %d", p.Skipped, first-10)
	}
}
