// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/vfs"
)

// damage flips a bit of what is stored at a place.
func (r *rig) damage(ref machine.Ref) {
	r.t.Helper()
	name := fmt.Sprintf("%010d.seg", ref.At/segmentSize)
	if err := vfs.NewFault(r.disk).FlipBit(name, int64(ref.At%segmentSize+40)*8); err != nil {
		r.t.Fatal(err)
	}
}

// readAll reads what there is and returns the first events of the batches.
func (r *rig) readAll(x *Reader) (firsts []stream.SeqNo) {
	r.t.Helper()
	for {
		got, err := r.next(x, 1<<20)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(got) == 0 {
			return firsts
		}
		for _, b := range got {
			firsts = append(firsts, b.First)
		}
	}
}

// twoBlocks makes a partition with sealed blocks and some open batches, each of three
// events.
func twoBlocks(t *testing.T) (*rig, []stream.Block) {
	r := newRig(t, Settings{Partitions: 2})
	for range 150 {
		r.append(0, 3, 1000)
		r.append(1, 1, 100)
	}
	var blocks []stream.Block
	for at := stream.SeqNo(0); ; {
		b, sealed, _ := r.h.partitions[0].m.Find(at)
		if !sealed {
			break
		}
		blocks = append(blocks, b)
		at = b.End
	}
	if len(blocks) < 2 {
		t.Fatalf("%d blocks", len(blocks))
	}
	return r, blocks
}

// Only the batch whose bytes are damaged is lost. It is said once, however many readers
// meet it, and they go on behind it.
func TestADamagedBatchIsLeftOut(t *testing.T) {
	r, blocks := twoBlocks(t)
	index := r.reader(ReaderOptions{Group: "find"})
	if _, err := r.next(index, 1); err != nil {
		t.Fatal(err)
	}
	lost := index.fetch.index[7]
	_, _, open := r.h.partitions[0].m.Find(449)
	r.damage(lost.Body)
	r.damage(open[0].Body)
	for n := range 3 {
		x := r.reader(ReaderOptions{Group: "g", Name: fmt.Sprint(n)})
		got := r.readAll(x)
		if len(got) != 148 || slices.Contains(got, lost.First) || slices.Contains(got, open[0].First) {
			t.Errorf("%d batches are read, %d of block %v", len(got), lost.First, blocks[0])
		}
	}
	if len(r.damages) != 2 {
		t.Fatalf("reported %v", r.damages)
	}
	for i, want := range []stream.SeqNo{lost.First, open[0].First} {
		if d := r.damages[i]; d.Partition != 0 || d.First != want || d.Count != 3 || !errors.Is(d.Err, journal.ErrCorrupt) {
			t.Errorf("reported %+v, want event %d", d, want)
		}
	}
	if got := r.readAll(r.reader(ReaderOptions{Partition: 1})); len(got) != 150 {
		t.Errorf("%d batches of the other partition", len(got))
	}
}

// reading counts the records that are read.
type reading struct {
	journal.Journal
	records int
	read    func() // called after each call
}

func (c *reading) Read(ctx context.Context, reads []journal.Read) {
	c.records += len(reads)
	c.Journal.Read(ctx, reads)
	c.read()
}

// What follows damaged batches is not read again for each of them.
func TestManyDamagedBatchesAreReadOnce(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	for range 60 {
		r.append(0, 1, 100)
	}
	_, _, open := r.h.partitions[0].m.Find(0)
	for i := range open[:50] {
		r.damage(open[i].Body)
	}
	c := &reading{Journal: r.wal, read: func() {}}
	r.h.Engine.Manual().SetJournal(c)
	if got := r.readAll(r.reader(ReaderOptions{})); len(got) != 10 || len(r.damages) != 50 || c.records > 100 {
		t.Errorf("%d batches, %d damages, %d records were read", len(got), len(r.damages), c.records)
	}
}

// A caller that gives up while a damaged batch is read misses nothing that was read before.
func TestCallersGiveUpAtADamagedBatch(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	for range 5 {
		r.append(0, 1, 100)
	}
	_, _, open := r.h.partitions[0].m.Find(0)
	r.damage(open[2].Body)
	x := r.reader(ReaderOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	c := &reading{Journal: r.wal, read: cancel}
	r.h.Engine.Manual().SetJournal(c)
	var firsts []stream.SeqNo
	for range 5 {
		got, _, err := x.Poll(ctx, 1<<20)
		for _, b := range got {
			firsts = append(firsts, b.First)
		}
		if err != nil {
			break
		}
		r.step()
	}
	c.read = func() {}
	if firsts = append(firsts, r.readAll(x)...); !slices.Equal(firsts, []stream.SeqNo{0, 1, 3, 4}) {
		t.Errorf("events %v are read", firsts)
	}
}

// Much damage is said once, too.
func TestMuchDamageIsSaidOnce(t *testing.T) {
	var said int64
	d := damages{report: func(x Damage) { said += x.Count }}
	for range 3 {
		for i := range stream.SeqNo(10_000) {
			d.add(Damage{Partition: 1, First: 10 * i, Count: 10})
			d.add(Damage{Partition: 2, First: 20 * (i % 1000), Count: 10})
		}
	}
	if said != 100_000+10_000 {
		t.Errorf("%d events are said to be damaged", said)
	}
	d.add(Damage{Partition: 2, First: 15, Count: 10}) // five of them are new
	d.add(Damage{Partition: 2, First: 0, Count: 50})  // and fifteen
	if said != 110_000+5+15 {
		t.Errorf("%d events are said to be damaged", said)
	}
}

func TestADamagedIndexLosesItsBlock(t *testing.T) {
	r, blocks := twoBlocks(t)
	r.damage(blocks[0].Index)
	x := r.reader(ReaderOptions{From: stream.FromSeq(5)})
	got := r.readAll(x)
	if len(got) == 0 || got[0] != blocks[1].First {
		t.Errorf("read on with %v", got[:min(len(got), 1)])
	}
	want := Damage{Partition: 0, First: blocks[0].First, Count: int64(blocks[0].End - blocks[0].First)}
	if len(r.damages) != 1 || r.damages[0].First != want.First || r.damages[0].Count != want.Count {
		t.Errorf("reported %v, want %v", r.damages, want)
	}
	// Retention frees a block that cannot be read as any other.
	r.now = r.now.Add(time.Hour)
	if _, err := run(r, func() (int, error) {
		return 0, r.h.Configure(t.Context(), Settings{Partitions: 2, RetainFor: time.Minute})
	}); err != nil {
		t.Fatal(err)
	}
	r.settle()
	r.check()
	if i := r.info(0); i.First != 450 {
		t.Errorf("%+v", i)
	}
}

// An index that is whole, but of another block, is not believed.
func TestAForeignIndexIsNoticed(t *testing.T) {
	r, blocks := twoBlocks(t)
	x := r.reader(ReaderOptions{})
	x.answer.block, x.answer.sealed = blocks[0], true
	x.answer.block.Index = blocks[1].Index
	if got, err := x.loadIndex(t.Context()); got != nil || err != nil || len(r.damages) != 1 || !errors.Is(r.damages[0].Err, stream.ErrIndex) {
		t.Errorf("%v, %v, %v", got, err, r.damages)
	}
}

// A disk that fails is not damage: the reader gets the error, and nothing is skipped.
func TestAnErrorOfTheDiskIsNotALoss(t *testing.T) {
	r, _ := twoBlocks(t)
	r.disk = r.disk.CrashClone(0)
	fault := vfs.NewFault(r.disk)
	r.fs = fault
	r.open()
	r.settle()
	x := r.reader(ReaderOptions{})
	broken := errors.New("input/output error")
	fault.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpRead {
			return broken
		}
		return nil
	})
	if got, err := r.next(x, 1000); !errors.Is(err, broken) || len(got) > 0 {
		t.Errorf("%d batches, %v", len(got), err)
	}
	fault.Before(nil)
	if end := r.drain(x, 0); end != 450 || len(r.damages) > 0 {
		t.Errorf("read up to %d, %v", end, r.damages)
	}
}

// On a full disk what has expired goes first. Then senders are refused, readers go on, and
// senders are admitted again when there is space.
func TestFullDisk(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2, RetainFor: time.Hour})
	r.disk.SetSize(4 << 20)
	fill := func() (stored int) {
		for {
			_, err := r.try(&Append{Partition: stored % 2, Count: 1, Raw: make([]byte, 4000)})
			if errors.Is(err, ErrDiskFull) {
				return stored
			}
			if err != nil || stored > 10_000 {
				t.Fatalf("%d stored: %v", stored, err)
			}
			stored++
			r.now = r.now.Add(time.Second)
		}
	}
	first := fill()
	if first < 500 {
		t.Fatalf("only %d batches fit", first)
	}
	x := r.reader(ReaderOptions{})
	if got := r.readAll(x); len(got) != (first+1)/2 {
		t.Errorf("%d of %d batches are read on a full disk", len(got), (first+1)/2)
	}
	if _, err := run(r, func() (Producer, error) { return r.h.OpenProducer(t.Context(), 0, nil) }); !errors.Is(err, ErrDiskFull) {
		t.Errorf("a new producer on a full disk: %v", err)
	}
	r.crash(1)
	if _, err := r.try(&Append{Count: 1, Raw: make([]byte, 4000)}); !errors.Is(err, ErrDiskFull) {
		t.Errorf("after a crash: %v", err)
	}
	// The oldest half expires.
	r.now = r.now.Add(time.Hour - time.Duration(first/2)*time.Second)
	r.idle(5 * time.Second)
	if i := r.info(0); i.First == 0 || i.First > i.Last {
		t.Errorf("%+v when the half has expired", i)
	}
	if again := fill(); again < first/4 {
		t.Errorf("%d batches fit after %d have expired", again, first/2)
	}
	// As long as things expire, nobody is refused.
	r.idle(2 * time.Hour)
	more := 3 * first
	if raceEnabled {
		more = first // for the sake of time
	}
	for i := range more {
		if _, err := r.try(&Append{Partition: i % 2, Count: 1, Raw: make([]byte, 4000)}); err != nil {
			t.Fatalf("batch %d, an hour after each other: %v", i, err)
		}
		r.now = r.now.Add(10 * time.Second)
	}
	r.check()
}

// After its lease a hub says nothing: it acknowledges nothing and answers no reader, also
// what is durable, and goes on when the lease is prolonged.
func TestNothingLeavesAfterTheLease(t *testing.T) {
	monotonic := time.Unix(1000, 0)
	r := newRig(t, Settings{Partitions: 1})
	r.opts.Monotonic = func() time.Time { return monotonic }
	r.crash(0)
	r.settle()
	m := r.h.Engine.Manual()
	until := monotonic.Add(time.Second)
	report := func() {
		st := r.wal.Status(m.Claim())
		st.Lease = until
		m.Report(st)
	}
	report()
	tail, old := r.reader(ReaderOptions{Group: "tail"}), r.reader(ReaderOptions{Group: "old"})
	report()
	if got, err := r.next(tail, 100); len(got) > 0 || err != nil { // it waits now
		t.Fatal(got, err)
	}
	acked := false
	r.h.Append(&Append{Raw: []byte("x"), Count: 1, Done: func(_ stream.SeqNo, err error) { acked = err == nil }})
	r.step()
	monotonic = until
	r.commit()
	report()
	for _, x := range []*Reader{tail, old} {
		if got, err := r.nextWithin(x, 3); len(got) > 0 || err != nil || acked {
			t.Errorf("after the lease: acknowledged %t, %d batches, %v", acked, len(got), err)
		}
	}
	until = until.Add(time.Second)
	report()
	r.step()
	for _, x := range []*Reader{tail, old} {
		if got, err := r.next(x, 100); len(got) != 1 || err != nil || !acked {
			t.Errorf("when it is prolonged: acknowledged %t, %d batches, %v", acked, len(got), err)
		}
	}
}

// The lease may end while a step is under way.
func TestNothingLeavesWhenTheLeaseEndsWithinAStep(t *testing.T) {
	until, reads := time.Unix(1000, 0), 0
	r := newRig(t, Settings{Partitions: 1})
	r.append(0, 1, 10)
	r.opts.Monotonic = func() time.Time {
		if reads++; reads > 1 {
			return until
		}
		return until.Add(-1)
	}
	r.crash(0)
	r.settle()
	x := r.reader(ReaderOptions{})
	m := r.h.Engine.Manual()
	st := r.wal.Status(m.Claim())
	st.Lease, reads = until, 0
	m.Report(st)
	if got, err := r.nextWithin(x, 2); len(got) > 0 || err != nil || reads < 2 {
		t.Errorf("%d batches, %v, the clock was read %d times", len(got), err, reads)
	}
}

// On a full disk what has expired is not kept for the sake of fewer records.
func TestFullDiskDoesNotWait(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1, RetainFor: time.Hour})
	r.disk.SetSize(4 << 20)
	var err error
	for err == nil {
		_, err = r.try(&Append{Count: 1, Raw: make([]byte, 4000)})
	}
	r.now = r.now.Add(time.Hour)
	for range 50 { // a second for each step would be too long
		r.step()
		r.work()
		r.commit()
	}
	if i := r.info(0); i.First != i.Last+1 {
		t.Errorf("events %d to %d are there", i.First, i.Last)
	}
	if _, err := r.try(&Append{Count: 1, Raw: make([]byte, 4000)}); err != nil {
		t.Error(err)
	}
}

// nextWithin is next in a number of steps.
func (r *rig) nextWithin(x *Reader, steps int) ([]Batch, error) {
	r.t.Helper()
	for range steps {
		if batches, ready, err := x.Poll(r.t.Context(), 100); ready || err != nil {
			return batches, err
		}
		r.step()
	}
	return nil, nil
}

// A hub whose history another owner has claimed ends everyone who waits, and stores
// nothing more.
func TestALostClaimEndsTheHub(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	var ended error
	x := r.reader(ReaderOptions{Ended: func(err error) { ended = err }})
	if _, err := r.next(x, 100); err != nil {
		t.Fatal(err)
	}
	thief, err := Open(t.Context(), r.wal, 0, r.set, r.opts)
	if err != nil {
		t.Fatal(err)
	}
	var got error
	r.h.Append(&Append{Raw: []byte("late"), Count: 1, Done: func(_ stream.SeqNo, err error) { got = err }})
	r.commit()
	r.h.Step(r.now)
	if err := r.h.Failed(); !errors.Is(err, ErrMoved) {
		t.Fatalf("the hub goes on: %v", err)
	}
	r.h.Engine.Manual().Stop(r.h.Failed())
	if !errors.Is(got, ErrMoved) || !errors.Is(ended, ErrMoved) {
		t.Errorf("a sender got %v, a reader %v", got, ended)
	}
	if _, err := x.Next(t.Context(), 100); !errors.Is(err, ErrMoved) {
		t.Errorf("Next returned %v", err)
	}
	r.h = thief
	r.settle()
	if i := r.info(0); i.Last != -1 {
		t.Errorf("%+v", i)
	}
	r.append(0, 1, 10)
}
