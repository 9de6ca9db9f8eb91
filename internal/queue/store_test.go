// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestStoreFindsWhatIsInIt deletes in random order and inserts again out of
// order, over several directories with gaps between them.
func TestStoreFindsWhatIsInIt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s store
	in := map[SeqNo]bool{}
	put := func(seq SeqNo) {
		e := s.put(seq, nil)
		if *e != (entry{seq: seq}) {
			t.Fatalf("the place of %d is not clean: %+v", seq, *e)
		}
		e.setState(Ready)
		e.bodyAt = uint64(seq)
		in[seq] = true
	}
	compare := func() {
		t.Helper()
		var got []SeqNo
		for seq, e := s.next(0); e != nil; seq, e = s.next(seq + 1) {
			got = append(got, seq)
			if e.bodyAt != uint64(seq) || s.get(seq) != e {
				t.Fatalf("message %d has the entry of %d", seq, e.bodyAt)
			}
		}
		want := make([]SeqNo, 0, len(in))
		for seq := range in {
			want = append(want, seq)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%d messages, want %d", len(got), len(want))
		}
	}
	const span = 40_000
	for seq := range SeqNo(span) {
		put(seq + 1)
	}
	put(10_000_000) // far away, as after a long life
	all := rnd.Perm(span)
	for i, n := range all {
		seq := SeqNo(n + 1)
		s.delete(seq)
		delete(in, seq)
		if s.get(seq) != nil {
			t.Fatalf("deleted %d is still there", seq)
		}
		if i%4000 == 0 {
			compare()
		}
		if back := SeqNo(all[rnd.IntN(i+1)] + 1); i%10 == 0 && !in[back] {
			put(back)
		}
	}
	compare()
}

// TestStragglersTakeLittleMemory leaves one message in ten behind.
func TestStragglersTakeLittleMemory(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	const sent = 400_000
	before := heapInUse()
	for i := range sent {
		send(t, q, epochStart, Arrival{Level: Level(min(i%10, 1))}, 1)
		if q.LevelCount(1) == 0 {
			continue
		}
		d, _ := q.Take(epochStart, Want{MinLevel: 1}, &out)
		if _, err := q.Complete(epochStart, d.Token, &out); err != nil {
			t.Fatal(err)
		}
		out.Reset()
	}
	waiting := q.Counts().Ready
	if got := int64(heapInUse()-before) / waiting; waiting != sent/10 || got > 80 {
		t.Errorf("%d messages wait and take %d bytes each, want %d and at most 80", waiting, got, sent/10)
	}
}
