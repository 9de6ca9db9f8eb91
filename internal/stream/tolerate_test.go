// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// written is a history with what was appended by each of its records.
type written struct {
	recs    [][]byte
	batches map[int]Batch // by record
	live    *Partition
}

// write makes a random history without retention, with a snapshot in it.
func write(rnd *rand.Rand) *written {
	w := &written{batches: map[int]Batch{}, live: New()}
	var out machine.Effects
	w.live.Create(&out)
	place, snap := uint64(1), machine.Snapshot(nil)
	body := func(size int) machine.Ref {
		place += uint64(size) + 1
		return machine.Ref{At: place, Size: uint32(size)}
	}
	for i := range 60 {
		switch {
		case rnd.IntN(6) == 0 && len(w.live.open) > 0:
			w.live.Seal(body(len(w.live.AppendIndex(nil))), &out)
		case i > 20 && rnd.IntN(4) == 0:
			if snap == nil {
				snap = w.live.Snapshot()
			}
			if snap.Step(&machine.Budget{Items: 2, Bytes: 1000}, nil, &out) {
				snap = nil
			}
		default:
			a := Arrival{Body: body(10), Count: 1 + uint32(rnd.IntN(5))}
			first := w.live.Append(epochStart.Add(time.Duration(i)*time.Second), a, &out)
			w.batches[len(w.recs)+out.Count()-1] = Batch{First: first, Count: a.Count, Body: a.Body}
		}
		for _, rec := range out.Records() {
			w.recs = append(w.recs, slices.Clone(rec))
		}
		out.Reset()
	}
	return w
}

// Whatever is lost of a history, the rest is there, and no number is used again, also if it
// was the end that is lost.
func TestHistoriesWithLosses(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		w := write(rnd)
		from := rnd.IntN(len(w.recs))
		to := min(len(w.recs), from+1+rnd.IntN(6))
		p := New()
		var out machine.Effects
		for i, rec := range w.recs {
			switch {
			case i == from:
				p.Lost()
				continue
			case i > from && i < to:
				continue
			}
			if err := p.Replay(rec, &out); err != nil {
				t.Fatalf("seed %d, without %d to %d: record %d: %v", seed, from, to-1, i, err)
			}
		}
		p.EndReplay()
		if err := p.Check(); err != nil || !p.Restored() {
			t.Fatalf("seed %d: restored %t, %v", seed, p.Restored(), err)
		}
		if p.Next() < w.live.Next() {
			t.Fatalf("seed %d, without %d to %d: the next event is %d, and there was %d", seed, from, to-1, p.Next(), w.live.Next()-1)
		}
		missing := SeqNo(0)
		for i, b := range w.batches {
			block, sealed, open := p.Find(b.First)
			there := sealed && block.First <= b.First || len(open) > 0 && open[0].First == b.First
			if i >= from && i < to {
				if !there && b.First < p.Next() {
					missing += SeqNo(b.Count)
				}
				continue
			}
			if !there {
				t.Fatalf("seed %d, without %d to %d: event %d of record %d is not there", seed, from, to-1, b.First, i)
			}
		}
		numbers := SeqNo(0)
		for _, gap := range p.Gaps() {
			numbers += gap.End - gap.First
		}
		if numbers < missing {
			t.Errorf("seed %d: %d events are missing, the gaps are %v", seed, missing, p.Gaps())
		}
		again(t, p)
	}
}

// A snapshot whose end is lost is what it was. Events that came while it was written are
// there.
func TestASnapshotWithoutItsEnd(t *testing.T) {
	var out machine.Effects
	p := New()
	p.Create(&out)
	for i := range 5 {
		p.Append(epochStart, Arrival{Body: machine.Ref{At: uint64(10*i + 1), Size: 5}, Count: 10}, &out)
		if i < 3 {
			p.Seal(machine.Ref{At: uint64(10*i + 7), Size: 1}, &out)
		}
	}
	out.Reset()
	snap := p.Snapshot()
	snap.Step(&machine.Budget{Items: 3, Bytes: 1000}, nil, &out)
	p.Append(epochStart, Arrival{Body: machine.Ref{At: 100, Size: 5}, Count: 10}, &out)
	q := New()
	q.Tolerate()
	for _, rec := range out.Records() {
		if err := q.Replay(rec, new(machine.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	q.Lost()
	if q.EndReplay(); q.First() != 0 || q.blocks.len() != 3 || q.Behind() != 60 || q.Next() != 60+lostNumbers || q.Missing() != 20 {
		t.Errorf("events %d to %d, %d blocks, %d missing", q.First(), q.Next(), q.blocks.len(), q.Missing())
	}
}

// What was lost at the end had numbers, and gave ids to producers, that nothing shows. None is
// given again, in this life or a later one, and events are counted without those numbers.
func TestNumbersOfALostEndAreNotUsedAgain(t *testing.T) {
	var out machine.Effects
	p := New()
	p.Create(&out)
	at := uint64(1)
	add := func(p *Partition, out *machine.Effects, n uint32) SeqNo {
		at += 100
		if p.MustSeal(epochStart, 10) {
			p.Seal(machine.Ref{At: at, Size: 10}, out)
			at += 100
		}
		return p.Append(epochStart, Arrival{Body: machine.Ref{At: at, Size: 10}, Count: n}, out)
	}
	add(p, &out, 3)
	if _, err := p.OpenProducer(Producer{ID: -1}, &out); err != nil {
		t.Fatal(err)
	}
	log := slices.Clone(out.Records())
	replay := func() *Partition {
		q := New()
		for i, rec := range log {
			if err := q.Replay(slices.Clone(rec), new(machine.Effects)); err != nil {
				t.Fatalf("record %d: %v", i, err)
			}
			if i == 2 {
				q.Lost() // and nobody knows what
			}
		}
		q.EndReplay()
		return q
	}
	q := replay()
	if got, want := q.Gaps(), (Gap{3, 3 + lostNumbers, true}); len(got) != 1 || got[0] != want || q.Behind() != 3 {
		t.Fatalf("gaps %v, the last event is %d", got, q.Behind()-1)
	}
	if again := replay(); again.Next() != q.Next() {
		t.Errorf("the next start continues with event %d, this one with %d", again.Next(), q.Next())
	}
	var more machine.Effects
	if made, err := q.OpenProducer(Producer{ID: -1}, &more); err != nil || made.ID <= lostProducers {
		t.Errorf("the next producer is %d, %v", made.ID, err)
	}
	if first := add(q, &more, 4); first != 3+lostNumbers {
		t.Errorf("the next event is %d", first)
	}
	if n := q.EventsFrom(1); n != 2+4 {
		t.Errorf("%d events from event 1 on", n)
	}
	log = append(log, more.Records()...)
	if again := replay(); again.Next() != q.Next() || again.Check() != nil || again.EventsFrom(0) != 7 {
		t.Errorf("a later start continues with event %d, want %d", again.Next(), q.Next())
	}
}

// A partition that is lost as a whole, and made anew, does not begin with event 0 again.
func TestALostPartitionBeginsBehindItsNumbers(t *testing.T) {
	var out machine.Effects
	p := New()
	p.Create(&out)
	p.Skip(&out)
	p.Append(epochStart, Arrival{Body: machine.Ref{At: 5, Size: 5}, Count: 2}, &out)
	q := New()
	for _, rec := range out.Records() {
		if err := q.Replay(rec, new(machine.Effects)); err != nil {
			t.Fatal(err)
		}
	}
	if q.Next() != lostNumbers+2 || q.Next() != p.Next() || q.Check() != nil {
		t.Errorf("the next event is %d, want %d", q.Next(), p.Next())
	}
}

// Batches whose block is not known, since the record of it is lost, are found one by one.
func TestALostSealLosesNothing(t *testing.T) {
	var out machine.Effects
	p := New()
	p.Create(&out)
	at := uint64(1)
	body := func() machine.Ref {
		at += 100
		return machine.Ref{At: at, Size: 10}
	}
	lost := -1
	for block := range 3 {
		for range 4 {
			p.Append(epochStart, Arrival{Body: body(), Count: 2}, &out)
		}
		if block == 0 {
			lost = out.Count()
		}
		p.Seal(body(), &out)
	}
	p.Append(epochStart, Arrival{Body: body(), Count: 2}, &out)

	var effects machine.Effects
	again := New()
	for i, rec := range out.Records() {
		if i == lost {
			again.Lost()
			continue
		}
		if err := again.Replay(rec, &effects); err != nil {
			t.Fatal(err)
		}
	}
	again.EndReplay()
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	if again.Missing() > 0 || again.First() != 0 || again.Next() != p.Next() || again.Bytes() != p.Bytes() {
		t.Errorf("%d events are missing of %d to %d, %d bytes", again.Missing(), again.First(), again.Next()-1, again.Bytes())
	}
	for seq := SeqNo(0); seq < 8; seq += 2 {
		block, sealed, _ := again.Find(seq)
		if b, alone := block.Alone(); !sealed || !alone || b.First != seq || b.Count != 2 || b.Body.Size != 10 {
			t.Errorf("event %d is in %+v", seq, block)
		}
	}
	if block, sealed, _ := again.Find(8); !sealed || block.First != 8 || block.End != 16 {
		t.Errorf("event 8 is in %+v", block)
	}
}
