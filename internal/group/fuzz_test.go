// SPDX-License-Identifier: Apache-2.0

package group

import (
	"encoding/hex"
	"testing"

	"github.com/triagemq/triagemq/internal/machine"
)

// FuzzReplay replays records that nobody has written. Whatever they say, groups that accept
// them are whole, and can be written, read again and used. The first byte says whether
// records may be missing, and before which record they are; the length of each record is
// before it.
func FuzzReplay(f *testing.F) {
	_, lines, _ := everyKind(f)
	for _, mode := range []byte{0, 1, 11} {
		for _, skip := range []int{-1, 0, 1, 3, 5, 8} {
			data := []byte{mode}
			for i, line := range lines {
				if rec, err := hex.DecodeString(line); err == nil && i != skip {
					data = append(append(data, byte(len(rec))), rec...)
				}
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New()
		var out machine.Effects
		lostAt := -1
		if len(data) > 0 && data[0]&1 != 0 {
			s.Tolerate()
			lostAt = int(data[0] >> 1)
		}
		for i := 0; len(data) > 1; i++ {
			if i == 0 {
				data = data[1:]
			}
			if i == lostAt {
				s.Lost()
			}
			n := min(int(data[0]), len(data)-1)
			if s.Replay(data[1:1+n], &out) != nil {
				return
			}
			data = data[1+n:]
			if err := s.Check(); err != nil && !s.restore.on {
				t.Fatal(err)
			}
		}
		if s.restore.on {
			s.EndReplay()
		}
		if !s.Restored() {
			return
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		again(t, s)
		use(t, s)
		again(t, s)
	})
}

// again writes a snapshot and reads it.
func again(t *testing.T, s *Groups) {
	var out machine.Effects
	snap := s.Snapshot()
	for !snap.Step(&machine.Budget{Items: 2, Bytes: 1000}, nil, &out) {
	}
	q := New()
	for _, rec := range out.Records() {
		if err := q.Replay(rec, new(machine.Effects)); err != nil {
			t.Fatalf("its own snapshot: %v", err)
		}
	}
	if got, want := describe(q), describe(s); got != want {
		t.Fatalf("its own snapshot:\ngot  %s\nwant %s", got, want)
	}
}

// use has a member join every group and all others go.
func use(t *testing.T, s *Groups) {
	var out machine.Effects
	now := start.AddDate(10, 0, 0)
	s.SetPartitions(now, 3)
	for _, name := range s.Names() {
		if err := s.Join(now, name, Member{ID: "new", Run: "run"}, &out); err != nil && len(s.find(name).members) < maxMembers {
			t.Fatal(err)
		}
	}
	for range 5 {
		s.Tick(now, &out)
		now = now.Add(silence / 2)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	s.Tick(now.Add(2*maxKeep), &out)
	if s.members != 0 {
		t.Fatalf("%d members are left", s.members)
	}
}
