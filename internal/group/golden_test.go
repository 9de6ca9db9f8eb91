// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// golden is where the records of version 1 are: a record in a line, and at the end a digest
// of the state.
const golden = "testdata/records/v1.hex"

// everyKind writes a record of each kind and returns them as lines of hexadecimal digits,
// and which line the snapshot begins with.
func everyKind(t testing.TB) (s *Groups, lines []string, snapshot int) {
	var out machine.Effects
	s = New()
	now := start
	ok := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.Create(&out)
	s.SetPartitions(now, 3)
	ok(s.Join(now, "$default", Member{ID: "a", Run: "r1", Name: "host", Keep: time.Second}, &out))
	ok(s.Join(now, "$default", Member{ID: "b", Run: "r2"}, &out))
	now = now.Add(joinWindow)
	s.Tick(now, &out)
	ok(s.Checkpoint(now, "$default", Checkpoint{Partition: 1, Epoch: 1, SeqNo: 4711}, &out))
	ok(s.Rewind(now, "$default", 0, -1, &out))
	ok(s.MoveAway(now, "$default", 0, time.Minute, &out))
	ok(s.Pause(now, "$default", []int{2}, now.Add(time.Hour), &out))
	ok(s.Leave(now, "$default", "b", &out))
	_, _, err := s.Claim(now, "other", Ownership{Partition: 2, Owner: "x"}, &out)
	ok(err)
	_, _, err = s.Claim(now, "gone", Ownership{Partition: 2, Owner: "x"}, &out)
	ok(err)
	s.Forget("gone", &out)
	now = now.Add(2 * time.Second)
	s.Gone(now, "$default", "b")
	s.Tick(now.Add(grace), &out)
	snapshot = out.Count()
	snap := s.Snapshot()
	for !snap.Step(&machine.Budget{Items: 10, Bytes: 1 << 20}, nil, &out) {
	}
	for _, rec := range out.Records() {
		lines = append(lines, hex.EncodeToString(rec))
	}
	return s, append(lines, fmt.Sprintf("digest %x", sha256.Sum256([]byte(describe(s))))), snapshot
}

// The bytes of version 1 never change: what is written today, and what is read.
func TestRecordsOfVersion1(t *testing.T) {
	raw, err := os.ReadFile(golden)
	if err != nil {
		t.Error(err)
	}
	live, lines, snapshot := everyKind(t)
	if got := strings.Join(lines, "\n") + "\n"; got != string(raw) {
		t.Fatalf("%s: want\n%s\ngot\n%s", golden, raw, got)
	}
	kinds := make(map[byte]bool)
	for _, from := range []int{0, snapshot} {
		s := New()
		for _, line := range lines[from : len(lines)-1] {
			rec, err := hex.DecodeString(line)
			if err != nil {
				t.Fatal(err)
			}
			kinds[rec[0]] = true
			if err := s.Replay(rec, new(machine.Effects)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		if got, want := describe(s), describe(live); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if len(kinds) != kindEnd {
		t.Errorf("kinds %v", kinds)
	}
}
