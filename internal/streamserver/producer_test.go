// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

func (r *rig) producer(asked *Producer) Producer {
	r.t.Helper()
	p, err := run(r, func() (Producer, error) { return r.h.OpenProducer(r.t.Context(), 0, asked) })
	if err != nil {
		r.t.Fatalf("open a producer: %v", err)
	}
	return p
}

// send appends a batch of a producer.
func (r *rig) send(p Producer, seq int32, count int) (stream.SeqNo, error) {
	r.t.Helper()
	p.Seq = seq
	return r.try(&Append{Count: count, Raw: []byte("batch"), Producer: &p})
}

func TestABatchThatComesTwiceIsStoredOnce(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	p := r.producer(nil)
	if p.ID < 1 || p.Epoch != 0 || p.Seq != 0 {
		t.Errorf("assigned %+v", p)
	}
	for i, c := range []struct {
		seq   int32
		count int
		want  stream.SeqNo
		err   error
	}{
		{1, 10, 0, nil},
		{11, 5, 10, nil},
		{11, 5, 10, nil},           // again
		{1, 10, 0, nil},            // the one before it again
		{1, 9, 0, ErrOutOfOrder},   // not the same
		{17, 1, 0, ErrOutOfOrder},  // one is missing
		{12, 10, 0, ErrOutOfOrder}, // overlaps
		{-1, 1, 0, ErrOutOfOrder},
		{16, 1, 15, nil},
	} {
		seq, err := r.send(p, c.seq, c.count)
		if !errors.Is(err, c.err) || err == nil && seq != c.want {
			t.Errorf("%d: event %d, %v, want %d, %v", i, seq, err, c.want, c.err)
		}
		if i == 4 {
			r.crash(1) // none of it is forgotten
		}
	}
	if last := r.info(0).Last; last != 15 {
		t.Errorf("the last event is %d", last)
	}
	if got := r.producer(&Producer{ID: p.ID, Epoch: 0, Seq: 3}); got.Seq != 16 {
		t.Errorf("it has published up to %d", got.Seq)
	}
}

func TestProducerNumbersWrap(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	p := r.producer(&Producer{ID: 5, Epoch: 2, Seq: math.MaxInt32 - 3})
	for _, seq := range []int32{math.MaxInt32 - 2, math.MaxInt32, 1} {
		if _, err := r.send(p, seq, 2); err != nil {
			t.Errorf("%d: %v", seq, err)
		}
	}
	if _, err := r.send(p, math.MaxInt32, 2); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestAHigherEpochStealsAProducer(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	old := r.producer(&Producer{ID: 7, Epoch: 1, Seq: -1})
	if _, err := r.send(old, 1, 1); err != nil {
		t.Fatal(err)
	}
	thief := r.producer(&Producer{ID: 7, Epoch: 2, Seq: 100})
	if _, err := r.send(old, 2, 1); !errors.Is(err, ErrProducerStolen) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := r.send(thief, 101, 1); err != nil {
		t.Errorf("the new one: %v", err)
	}
	_, err := run(r, func() (Producer, error) { return r.h.OpenProducer(t.Context(), 0, &old) })
	if !errors.Is(err, ErrProducerStolen) {
		t.Errorf("opened again: %v", err)
	}
	if _, err := run(r, func() (Producer, error) { return r.h.OpenProducer(t.Context(), 9, nil) }); !errors.Is(err, ErrPartition) {
		t.Errorf("no such partition: %v", err)
	}
}

// What peers can make a partition remember has a bound, in memory and on disk.
func TestProducersAreForgotten(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	first := r.producer(nil)
	for range 300 {
		p := r.producer(nil)
		if _, err := r.send(p, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.send(first, 1, 1); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("one that was not used: %v", err)
	}
	if n := r.h.partitions[0].m.SnapshotSize(); n > 64<<10 {
		t.Errorf("a snapshot takes %d bytes", n)
	}
}

func TestAppendIsRefused(t *testing.T) {
	r := newRig(t, Settings{Partitions: 2})
	for name, c := range map[string]struct {
		a    Append
		want error
	}{
		"no such partition": {Append{Partition: 2, Count: 1, Raw: []byte("x")}, ErrPartition},
		"negative":          {Append{Partition: -1, Count: 1, Raw: []byte("x")}, ErrPartition},
		"no events":         {Append{Raw: []byte("x")}, errCount},
		"too large":         {Append{Count: 1, Raw: make([]byte, 2*segmentSize)}, engine.ErrTooLarge},
		"unknown producer":  {Append{Count: 1, Raw: []byte("x"), Producer: &Producer{ID: 4}}, ErrOutOfOrder},
	} {
		if _, err := r.try(&c.a); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.append(1, 1, 10)
}

// Producers are in memory and there again after a restart, so they are charged. They get at
// most half of the account: who sends cannot take the memory of those who read. A new one
// then takes the place of the one that was unused longest, as if there were as many as a
// partition remembers; one that is known may always begin again.
func TestProducersAreCharged(t *testing.T) {
	r := newRig(t, Settings{Partitions: 4})
	r.opts.Stored = budget.New(100 << 10)
	r.crash(1)
	r.settle()
	open := func(partition int, asked *Producer) (p Producer, err error) {
		return p, r.do(func() (err error) {
			p, err = r.h.OpenProducer(t.Context(), partition, asked)
			return err
		})
	}
	var last Producer
	for n := range 600 {
		p, err := open(1, nil)
		if err != nil || p == last {
			t.Fatalf("producer %d: %v, %v", n, p, err)
		}
		last = p
	}
	used := r.opts.Stored.Used()
	if used > 51<<10 || r.h.partitions[1].m.Producers() < 100 {
		t.Fatalf("%d producers, %d bytes are charged", r.h.partitions[1].m.Producers(), used)
	}
	if again, err := open(1, &Producer{ID: last.ID, Epoch: -1, Seq: -1}); err != nil || again != last {
		t.Errorf("the last one, again: %v, %v; want %v", again, err, last)
	}
	if _, err := open(1, &Producer{ID: 1 << 40, Epoch: -1, Seq: -1}); !errors.Is(err, ErrMemory) {
		t.Errorf("one with an id of its own: %v, want %v", err, ErrMemory)
	}
	if _, err := open(2, &Producer{ID: 1 << 40, Epoch: -1, Seq: -1}); err != nil {
		t.Errorf("one of a partition that has few: %v", err)
	}
	if _, err := r.tryJoin("m", "1"); err != nil {
		t.Errorf("a member: %v", err)
	}
	r.opts.Stored = budget.New(1000)
	r.crash(2)
	r.settle()
	if again := r.opts.Stored.Used(); again < used {
		t.Errorf("after a restart %d bytes are charged, before %d", again, used)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = r.h.Run(ctx)
	if now := r.opts.Stored.Used(); now != 0 {
		t.Errorf("%d bytes are charged for a hub that has ended", now)
	}
}

// A producer that was replaced is told so, and does not mix with the one in its place.
func TestProducersAreReplaced(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.opts.Stored = budget.New(10 << 10)
	r.crash(1)
	r.settle()
	first := r.producer(nil)
	if _, err := r.send(first, 1, 3); err != nil {
		t.Fatal(err)
	}
	var next Producer
	for n := 0; next.ID != first.ID && n < 300; n++ {
		next = r.producer(nil)
	}
	if next.ID != first.ID || next.Epoch != first.Epoch+1 {
		t.Fatalf("nobody has replaced %v", first)
	}
	if _, err := r.send(first, 4, 1); !errors.Is(err, ErrProducerStolen) {
		t.Errorf("the one that was replaced: %v, want %v", err, ErrProducerStolen)
	}
	at, err := r.send(next, 1, 3)
	if err != nil || at != 3 {
		t.Errorf("the next one: event %d, %v", at, err)
	}
	r.crash(2)
	r.settle()
	if again, err := r.send(next, 1, 3); err != nil || again != at {
		t.Errorf("after a crash, the same batch: event %d, %v; want %d", again, err, at)
	}
}

// A partition remembers so many producers, however many there were.
func TestProducersThatAreForgottenCostNothing(t *testing.T) {
	r := newRig(t, Settings{Partitions: 1})
	r.opts.Stored = budget.New(1 << 20)
	r.crash(1)
	r.settle()
	for range 600 {
		r.producer(nil)
	}
	if used := r.opts.Stored.Used(); used != partitionCost+256*stream.ProducerCost {
		t.Errorf("%d bytes are charged, want those of 256 producers", used)
	}
}
