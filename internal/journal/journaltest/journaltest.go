// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

// Store is where journals under test keep their records.
type Store interface {
	// Open opens the journal and sets it going. The one opened before, if any,
	// is stopped first, cleanly.
	Open(t *testing.T) journal.Journal
	// Settle returns when everything appended so far is durable and watchers
	// have been told.
	Settle(t *testing.T)
}

// Run runs the suite; make returns a new, empty store each time.
func Run(t *testing.T, make func(t *testing.T) Store) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, Store)
	}{
		{"new shard is empty", newShardIsEmpty},
		{"records are replayed in order", recordsAreReplayedInOrder},
		{"positions grow", positionsGrow},
		{"a record is readable before it is durable", readableAtOnce},
		{"records of any size", recordsOfAnySize},
		{"read appends to dst", readAppends},
		{"many records are read, each with its bytes or its error", readMany},
		{"unknown positions are freed", unknownIsGone},
		{"shards do not see each other", shardsAreSeparate},
		{"a later claim fences the earlier", claimFences},
		{"the owner of a claim that has ended is notified, and no other", fencedIsTold},
		{"a released claim writes nothing", releasedWritesNothing},
		{"the status is known from the claim on", statusIsKnown},
		{"a context ends each call that waits", contextEndsCalls},
		{"a context ends the replay", contextEndsReplay},
		{"a new claim sees what the old one appended", claimSeesPending},
		{"epochs grow by one, across restarts", epochsGrow},
		{"several shards are claimed in one pass", oneScan},
		{"replay starts at Retain.From", replayStartsAtFrom},
		{"kept segments can be read", keptSegmentsCanBeRead},
		{"segments not kept are freed", segmentsAreFreed},
		{"truncation survives a restart", truncationSurvives},
		{"keeping what was freed is refused", keepGoneIsRefused},
		{"watchers learn what is durable", watchersLearn},
		{"a group larger than a segment is refused", groupTooLarge},
		{"an empty group is nothing", emptyGroup},
		{"append copies", appendCopies},
		{"many shards at once", manyShards},
		{"usage falls after a truncation", usageFalls},
		{"an owner without records can move on", emptyMovesOn},
		{"senders leave the reserve to upkeep", sendersLeaveTheReserve},
		{"a full disk clears by itself", fullClears},
		{"a full disk is known at once", fullIsKnownAtOnce},
		{"senders do not wait for the disk", busySendersAreRefused},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, make(t)) })
	}
}

// owner is a claim and the journal it is for.
type owner struct {
	journal.Claim
	j journal.Journal
}

// claim claims a shard and returns what it replays.
func claim(t *testing.T, j journal.Journal, shard journal.Shard) (owner, []entry) {
	t.Helper()
	c, records, err := journal.ClaimOne(t.Context(), j, shard)
	if err != nil {
		t.Fatalf("claim shard %d: %v", shard, err)
	}
	if c.Shard != shard || c.SegmentSize == 0 {
		t.Fatalf("claim of shard %d is %+v", shard, c)
	}
	var got []entry
	for rec, err := range records {
		if err != nil {
			t.Fatalf("replay shard %d: %v", shard, err)
		}
		got = append(got, entry{rec.At, string(rec.Payload)})
	}
	return owner{c, j}, got
}

// entry is a record that keeps its payload.
type entry struct {
	at      journal.Position
	payload string
}

// add appends one group.
func (o owner) add(t *testing.T, payloads ...string) []entry {
	t.Helper()
	records, at := make([][]byte, len(payloads)), make([]journal.Position, len(payloads))
	for i, p := range payloads {
		records[i] = []byte(p)
	}
	if err := o.j.Append(o.Claim, &journal.Group{Records: records, At: at}); err != nil {
		t.Fatalf("append %d records: %v", len(records), err)
	}
	added := make([]entry, len(payloads))
	for i, p := range payloads {
		added[i] = entry{at[i], p}
	}
	return added
}

// fill appends records until segment n is reached, and returns them.
func (o owner) fill(t *testing.T, n uint64) []entry {
	t.Helper()
	var added []entry
	for len(added) == 0 || o.Segment(added[len(added)-1].at) < n {
		added = append(added, o.add(t, string(make([]byte, o.SegmentSize/20)))...)
	}
	return added
}

func (o owner) wantRead(t *testing.T, entries ...entry) {
	t.Helper()
	for i, e := range entries {
		got, err := journal.ReadOne(t.Context(), o.j, e.at, nil)
		if err != nil {
			t.Fatalf("read record %d at %d: %v", i, e.at, err)
		}
		if string(got) != e.payload {
			t.Fatalf("read record %d at %d: got %d bytes, %.40q, want %d, %.40q", i, e.at, len(got), got, len(e.payload), e.payload)
		}
	}
}

func wantEntries(t *testing.T, got, want []entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("replayed %d records, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("replayed record %d: got %.40q at %d, want %.40q at %d", i, got[i].payload, got[i].at, want[i].payload, want[i].at)
		}
	}
}
