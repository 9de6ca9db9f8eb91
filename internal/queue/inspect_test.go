// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"testing"
	"time"
)

func TestReadyCountsBytesByLevelAndClass(t *testing.T) {
	now := time.Unix(1000, 0)
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	as := []Arrival{
		{Level: 2, Class: 1, Body: Ref{At: 1, Size: 10}},
		{Level: 7, Class: 2, Body: Ref{At: 2, Size: 20}},
		{Level: 2, Class: 1, Body: Ref{At: 3, Size: 30}},
	}
	if err := q.Enqueue(now, as, make([]SeqNo, 3), &out); err != nil {
		t.Fatal(err)
	}
	d, _ := q.Take(now, TakeOptions{MaxLevel: 2}, &out) // message 1 does not wait any more
	check := func(when string, class1, bytes1, from3, bytes3 int64, oldest []SeqNo) {
		t.Helper()
		if n, b := q.ReadyOf(1); n != class1 || b != bytes1 {
			t.Errorf("%s: class 1 has %d ready with %d bytes, want %d and %d", when, n, b, class1, bytes1)
		}
		if n, b := q.ReadyFrom(3); n != from3 || b != bytes3 {
			t.Errorf("%s: from level 3 %d are ready with %d bytes, want %d and %d", when, n, b, from3, bytes3)
		}
		var got []SeqNo
		for seq := range q.OldestOf(1) {
			got = append(got, seq)
		}
		if !slices.Equal(got, oldest) {
			t.Errorf("%s: the oldest of class 1 are %v, want %v", when, got, oldest)
		}
	}
	check("one taken", 1, 30, 1, 20, []SeqNo{3})
	if _, err := q.Release(now, d.Token, &out); err != nil {
		t.Fatal(err)
	}
	check("returned", 2, 40, 1, 20, []SeqNo{1, 3})
	if err := q.Reclassify(now, 3, Classification{Level: 9, Class: 2}, &out); err != nil {
		t.Fatal(err)
	}
	check("reclassified", 1, 10, 2, 50, []SeqNo{1})
}

func TestCappedTakerGetsNothingAboveLevelZero(t *testing.T) {
	now := time.Unix(1000, 0)
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	if err := q.Enqueue(now, []Arrival{{Level: 5}, {Level: 0}}, make([]SeqNo, 2), &out); err != nil {
		t.Fatal(err)
	}
	if d, ok := q.Take(now, TakeOptions{HasMaxLevel: true}, &out); !ok || d.Level != 0 {
		t.Errorf("took level %d, %t; want level 0", d.Level, ok)
	}
	if d, ok := q.Take(now, TakeOptions{HasMaxLevel: true}, &out); ok {
		t.Errorf("took level %d too, want nothing", d.Level)
	}
}
