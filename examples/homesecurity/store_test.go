// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/client"
)

// testStore tests what instances need of a storage.
func testStore(t *testing.T, s store) {
	ctx := t.Context()
	a, none, err := s.load(ctx, 12_345)
	if err != nil || none != "" || a.Home != 12_345 || a.SeqNo != -1 {
		t.Fatalf("a home that was never heard of: %+v, version %q, %v", a, none, err)
	}
	a.apply(reading{12_345, "door", "open", 1}, "3", 5)
	first, err := s.save(ctx, a, none)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.save(ctx, a, none); !errors.Is(err, errReplaced) {
		t.Errorf("saved as a new document: %v", err)
	}
	b, v, err := s.load(ctx, 12_345)
	if err != nil || v != first {
		t.Fatalf("version %q, %v, want %q", v, err, first)
	}
	b.apply(reading{12_345, "door", "closed", 2}, "3", 6)
	if _, err := s.save(ctx, b, first); err != nil {
		t.Fatal(err)
	}
	a.apply(reading{12_345, "door", "closed", 2}, "3", 7)
	if _, err := s.save(ctx, a, first); !errors.Is(err, errReplaced) {
		t.Errorf("saved over another's document: %v", err)
	}
	if got, _, err := s.load(ctx, 12_345); err != nil || got.SeqNo != 6 {
		t.Errorf("event %d, %v, want the one of the winner, 6", got.SeqNo, err)
	}
}

func TestDirectory(t *testing.T) {
	s, err := openStore(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testStore(t, s)
}

// test/browser runs it with Azurite.
func TestBlobs(t *testing.T) {
	at := os.Getenv("HOMESECURITY_TEST_BLOBS")
	if at == "" {
		t.Skip("HOMESECURITY_TEST_BLOBS has no connection string")
	}
	s, err := openStore(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	testStore(t, s)
}

// Of several that replace the same version, one wins.
func TestOneWins(t *testing.T) {
	s := dirStore(t.TempDir())
	stored := version("")
	for round := range 50 {
		var wg sync.WaitGroup
		won := make([]version, 4)
		for i := range won {
			wg.Go(func() {
				v, err := s.save(t.Context(), aggregate{Partition: "1", SeqNo: client.SeqNo(round*10 + i)}, stored)
				if err != nil && !errors.Is(err, errReplaced) {
					t.Error(err)
				}
				won[i] = v
			})
		}
		wg.Wait()
		_, now, err := s.load(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, v := range won {
			if v != "" {
				n++
			}
		}
		if n != 1 || now == stored {
			t.Fatalf("round %d: %d won, version %q", round, n, now)
		}
		stored = now
	}
}

// homesOn returns the homes of partition 3, as an instance has them that got it just now.
func homesOn(s store) *partitionHomes {
	return &partitionHomes{partition: "3", store: s, homes: map[int]*document{}, unsaved: map[int]*document{}}
}

// eventsOf returns readings as events with numbers from first on.
func eventsOf(t *testing.T, first client.SeqNo, rs ...reading) (es []*client.Received) {
	t.Helper()
	for i, r := range rs {
		m, err := r.event()
		if err != nil {
			t.Fatal(err)
		}
		es = append(es, &client.Received{Message: *m, SeqNo: first + client.SeqNo(i)})
	}
	return es
}

// An instance that was stopped goes on after its partition has another owner.
func TestDeposedInstanceUndoesNothing(t *testing.T) {
	ctx, s := t.Context(), dirStore(t.TempDir())
	old, owner := homesOn(s), homesOn(s)
	if _, err := old.handle(ctx, eventsOf(t, 0, story[:3]...)); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.handle(ctx, eventsOf(t, 1, story[1:]...)); err != nil {
		t.Fatal(err)
	}
	if _, err := old.handle(ctx, eventsOf(t, 3, story[3:5]...)); !errors.Is(err, errReplaced) {
		t.Errorf("the deposed instance: %v, want %v", err, errReplaced)
	}
	a, _, err := s.load(ctx, 7)
	if err != nil {
		t.Fatal(err)
	}
	wantDocument(t, a, storyDocument)
	// If it is the owner in truth, its next attempt begins with what is stored.
	if _, err := old.handle(ctx, eventsOf(t, 3, story[3:]...)); err != nil {
		t.Error(err)
	}
}

// A batch that failed comes again, and then event by event without the one that is wrong.
func TestFailedBatchIsHandledAgain(t *testing.T) {
	ctx, s := t.Context(), dirStore(t.TempDir())
	h := homesOn(s)
	events := eventsOf(t, 0, story...)
	events[4].Body = json.RawMessage(`{"home": "seven"}`)
	for range 2 {
		if _, err := h.handle(ctx, events); err == nil {
			t.Fatal("an event that is no reading was accepted")
		}
	}
	for i, e := range events {
		if _, err := h.handle(ctx, []*client.Received{e}); (err != nil) != (i == 4) {
			t.Errorf("event %d: %v", i, err)
		}
	}
	a, _, err := s.load(ctx, 7)
	if err != nil || a.Changes != 4 || a.Alarms != 1 || a.Recent[0].At != 5000 {
		t.Errorf("document %+v, %v", a, err)
	}
}
