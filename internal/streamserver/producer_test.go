// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"math"
	"testing"

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
