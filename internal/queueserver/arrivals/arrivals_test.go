// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

func TestPositionIsThatOfTheGroupOfTheArrival(t *testing.T) {
	var tr Tracker
	tr.Recovered(10)
	for _, seq := range []queue.SeqNo{11, 12} {
		if !tr.Assigned(seq) {
			t.Fatalf("%d is not higher than those before", seq)
		}
	}
	if tr.Assigned(12) || tr.Assigned(9) {
		t.Fatal("a number that is not higher counts as new")
	}
	tr.Appended(100, 50)
	tr.Assigned(15)
	tr.Appended(200, 50)
	tr.Assigned(16)

	check := func(durable journal.Position, want map[queue.SeqNo]journal.Position) {
		t.Helper()
		for seq, at := range want {
			if got, ok := tr.Position(seq, durable); !ok || got != at {
				t.Errorf("message %d with %d durable: %d, %v; want %d", seq, durable, got, ok, at)
			}
		}
		if at, ok := tr.Position(16, durable); ok {
			t.Errorf("message 16 is not appended, and yet at %d", at)
		}
	}
	check(50, map[queue.SeqNo]journal.Position{1: 0, 10: 0, 11: 100, 12: 100, 13: 200, 15: 200})
	check(100, map[queue.SeqNo]journal.Position{11: 0, 12: 0, 13: 200, 15: 200})
	check(250, map[queue.SeqNo]journal.Position{12: 0, 13: 0, 15: 0})
	if len(tr.pending) != 0 {
		t.Errorf("%d groups are pending although all are durable", len(tr.pending))
	}
}

func TestAppendedForgetsWhatIsDurable(t *testing.T) {
	var tr Tracker
	for i := range 1000 {
		tr.Assigned(queue.SeqNo(i + 1))
		tr.Appended(journal.Position(10*(i+1)), journal.Position(10*max(i-3, 0)))
		if len(tr.pending) > 5 {
			t.Fatalf("%d groups are pending, want at most 5", len(tr.pending))
		}
	}
}
