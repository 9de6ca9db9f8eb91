// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"errors"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

func shardsAreSeparate(t *testing.T, s Store) {
	j := s.Open(t)
	a, _ := claim(t, j, 1)
	b, _ := claim(t, j, 2)
	var wantA, wantB []entry
	for range 50 {
		wantA = append(wantA, a.add(t, "a")...)
		wantB = append(wantB, b.add(t, "b", "bb")...)
	}
	s.Settle(t)
	j = s.Open(t)
	_, gotA := claim(t, j, 1)
	_, gotB := claim(t, j, 2)
	_, gotC := claim(t, j, 3)
	wantEntries(t, gotA, wantA)
	wantEntries(t, gotB, wantB)
	wantEntries(t, gotC, nil)
}

func claimFences(t *testing.T, s Store) {
	j := s.Open(t)
	old, _ := claim(t, j, 1)
	other, _ := claim(t, j, 2)
	want := old.add(t, "from the first")
	now, _ := claim(t, j, 1)

	err := j.Append(old.Claim, &journal.Group{Records: [][]byte{[]byte("late")}, At: make([]journal.Position, 1)})
	if !errors.Is(err, journal.ErrFenced) {
		t.Errorf("append with the old claim: %v, want %v", err, journal.ErrFenced)
	}
	if err := j.Truncate(t.Context(), old.Claim, journal.Retain{From: want[0].at}); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("truncate with the old claim: %v, want %v", err, journal.ErrFenced)
	}
	want = append(want, now.add(t, "from the second")...)
	other.add(t, "from another shard")
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
}

func claimSeesPending(t *testing.T, s Store) {
	j := s.Open(t)
	old, _ := claim(t, j, 1)
	want := old.add(t, "perhaps", "not", "yet", "durable")
	_, got := claim(t, j, 1)
	wantEntries(t, got, want)
}

func epochsGrow(t *testing.T, s Store) {
	for want := uint32(1); want < 6; want++ {
		o, _ := claim(t, s.Open(t), 1)
		if o.Epoch != want {
			t.Fatalf("epoch %d, want %d", o.Epoch, want)
		}
	}
}

func replayStartsAtFrom(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	all := o.add(t, "a", "b", "c", "d", "e")
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: all[2].at}); err != nil {
		t.Fatal(err)
	}
	all = append(all, o.add(t, "f")...)
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, all[2:])
}

func keptSegmentsCanBeRead(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	all := o.fill(t, o.Segment(o.add(t, "first")[0].at)+8)
	last := all[len(all)-1]
	var kept []entry
	var segments []uint64
	for _, e := range all {
		if b := o.Segment(e.at); b%2 == 0 && b < o.Segment(last.at) {
			kept = append(kept, e)
			if len(segments) == 0 || segments[len(segments)-1] != b {
				segments = append(segments, b)
			}
		}
	}
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: last.at, Segments: segments}); err != nil {
		t.Fatal(err)
	}
	o.fill(t, o.Segment(last.at)+8) // time to use freed segments again
	o.wantRead(t, kept...)
	s.Settle(t)
	o, _ = claim(t, s.Open(t), 1)
	o.wantRead(t, kept...)
}

func segmentsAreFreed(t *testing.T, s Store) {
	j := s.Open(t)
	o, _ := claim(t, j, 1)
	all := o.fill(t, o.Segment(o.add(t, "first")[0].at)+8)
	last := all[len(all)-1]
	if err := j.Truncate(t.Context(), o.Claim, journal.Retain{From: last.at}); err != nil {
		t.Fatal(err)
	}
	o.fill(t, o.Segment(last.at)+8)
	for _, e := range all {
		// Freed "now or later": the record is there or it was freed, and never
		// anything else.
		got, err := journal.ReadOne(t.Context(), j, e.at, nil)
		if err != nil && !errors.Is(err, journal.ErrFreed) || err == nil && string(got) != e.payload {
			t.Fatalf("freed record at %d: %d bytes, %v", e.at, len(got), err)
		}
	}
	if _, err := journal.ReadOne(t.Context(), j, all[0].at, nil); !errors.Is(err, journal.ErrFreed) {
		t.Errorf("first record, sixteen segments ago: %v, want %v", err, journal.ErrFreed)
	}
}

func truncationSurvives(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	all := o.fill(t, o.Segment(o.add(t, "first")[0].at)+4)
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: all[len(all)-1].at}); err != nil {
		t.Fatal(err)
	}
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, all[len(all)-1:])
}

func keepGoneIsRefused(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	first := o.add(t, "first")[0]
	all := o.fill(t, o.Segment(first.at)+4)
	last := all[len(all)-1]
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: last.at}); err != nil {
		t.Fatal(err)
	}
	o.fill(t, o.Segment(last.at)+8)
	keep := journal.Retain{From: last.at, Segments: []uint64{o.Segment(first.at)}}
	if err := o.j.Truncate(t.Context(), o.Claim, keep); !errors.Is(err, journal.ErrFreed) {
		t.Errorf("keep a segment that was freed: %v, want %v", err, journal.ErrFreed)
	}
	if err := o.j.Truncate(t.Context(), o.Claim, journal.Retain{From: first.at}); err == nil {
		t.Error("keep from a place before the last one: no error")
	}
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	if len(got) == 0 || got[0] != last {
		t.Error("a refused truncation changed what is replayed")
	}
}

func watchersLearn(t *testing.T, s Store) {
	j := s.Open(t)
	var mu sync.Mutex
	told := make(map[journal.Shard]journal.Status)
	var owners []owner
	for shard := range journal.Shard(3) {
		o, _ := claim(t, j, shard)
		owners = append(owners, o)
		j.Watch(o.Claim, func(st journal.Status) {
			mu.Lock()
			defer mu.Unlock()
			if st.Durable < told[shard].Durable {
				t.Errorf("durable fell from %d to %d", told[shard].Durable, st.Durable)
			}
			told[shard] = st
		})
	}
	for i := range 30 {
		e := owners[i%3].add(t, "one", "two")
		s.Settle(t)
		mu.Lock()
		got := told[journal.Shard(i%3)]
		mu.Unlock()
		if got.Durable < e[1].at || got.Full || got.Err != nil {
			t.Fatalf("after settling, status %+v, want durable up to %d", got, e[1].at)
		}
	}
}

// oneScan claims several shards and gets the history of each in one pass.
func oneScan(t *testing.T, s Store) {
	j := s.Open(t)
	a, _ := claim(t, j, 1)
	b, _ := claim(t, j, 2)
	other, _ := claim(t, j, 3)
	var want []entry
	want = append(want, a.add(t, "a1")...)
	want = append(want, b.add(t, "b1", "b2")...)
	other.add(t, "not asked for")
	want = append(want, a.add(t, "a2")...)
	s.Settle(t)
	claims, records, err := s.Open(t).Claim(t.Context(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(claims) != 2 || claims[0].Shard != 2 || claims[1].Shard != 1 || claims[0].Epoch != 2 {
		t.Fatalf("claimed shards 2 and 1, got %+v", claims)
	}
	var got []entry
	for rec, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		if wantShard := journal.Shard(1 + (rec.Payload[0] - 'a')); rec.Shard != wantShard {
			t.Fatalf("record %q is said to be of shard %d", rec.Payload, rec.Shard)
		}
		got = append(got, entry{rec.At, string(rec.Payload)})
	}
	wantEntries(t, got, want)
}
