// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// ctx is that of calls that nothing ends.
var ctx = context.Background()

// errIO is the error of a disk that fails.
var errIO = errors.New("input/output error")

// TestMain lets more garbage gather: most tests make many small disks, and spend a
// third of their time on collecting them otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(400 << 20) // but not so much
	os.Exit(m.Run())
}

// open opens a store of small segments, closed when the test ends unless the
// test did.
func open(t testing.TB, fsys vfs.FS) *wal.WAL {
	t.Helper()
	w, err := wal.Open(fsys, wal.Options{SegmentSize: 16 << 10})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

// claim claims a shard.
func claim(t testing.TB, w *wal.WAL, shard journal.Shard) journal.Claim {
	t.Helper()
	c, _, err := replayed(w, shard)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// replayed claims a shard and returns its records.
func replayed(w *wal.WAL, shard journal.Shard) (journal.Claim, []journal.Record, error) {
	c, records, err := journal.ClaimOne(ctx, w, shard)
	if err != nil {
		return c, nil, fmt.Errorf("claim shard %d: %w", shard, err)
	}
	var got []journal.Record
	for rec, err := range records {
		if err != nil {
			return c, nil, fmt.Errorf("replay shard %d: %w", shard, err)
		}
		got = append(got, journal.Record{At: rec.At, Payload: slices.Clone(rec.Payload), Lost: rec.Lost})
	}
	return c, got, nil
}

// appendOne appends one record and returns its address.
func appendOne(t testing.TB, w *wal.WAL, c journal.Claim, payload string) journal.Position {
	t.Helper()
	var at [1]journal.Position
	if err := w.Append(c, &journal.Group{Records: [][]byte{[]byte(payload)}, At: at[:]}); err != nil {
		t.Fatalf("append: %v", err)
	}
	return at[0]
}

// commit writes and syncs everything that is pending.
func commit(t testing.TB, w *wal.WAL) {
	t.Helper()
	for range 10_000 {
		if err := w.Commit(); err != nil {
			t.Fatalf("commit: %v", err)
		}
		if w.Stats().Unsynced == 0 {
			return
		}
	}
	t.Fatal("still not committed after 10,000 steps")
}

func numbered(i int) string { return fmt.Sprintf("record %d %0*d", i, i%700, i) }
