// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// ctx is that of calls that nothing ends.
var ctx = context.Background()

// TestMain lets more garbage gather: most tests make many small disks, and spend a
// third of their time on collecting them otherwise.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(400 << 20) // but not so much
	os.Exit(m.Run())
}

// open opens a store of small segments, closed when the test ends unless the
// test did.
func open(t testing.TB, fsys vfs.FS) *WAL {
	t.Helper()
	return openWith(t, fsys, Options{SegmentSize: 16 << 10})
}

func openWith(t testing.TB, fsys vfs.FS, opts Options) *WAL {
	t.Helper()
	w, err := Open(fsys, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, journal.ErrClosed) && !errors.Is(err, journal.ErrFailed) {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

// claim claims a shard and returns what it replays.
func claim(t testing.TB, w *WAL, shard journal.Shard) (journal.Claim, []string) {
	t.Helper()
	c, records, err := journal.ClaimOne(ctx, w, shard)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	var got []string
	for rec, err := range records {
		if err != nil {
			t.Fatalf("replay: %v", err)
		}
		got = append(got, string(rec.Payload))
	}
	return c, got
}

// appendOne appends one record and returns its address.
func appendOne(t testing.TB, w *WAL, c journal.Claim, payload string) journal.Position {
	t.Helper()
	var at [1]journal.Position
	if err := w.Append(c, &journal.Group{Records: [][]byte{[]byte(payload)}, At: at[:]}); err != nil {
		t.Fatalf("append: %v", err)
	}
	return at[0]
}

func commit(t testing.TB, w *WAL) {
	t.Helper()
	for range 10_000 {
		if err := w.Commit(); err != nil {
			t.Fatalf("commit: %v", err)
		}
		w.mu.Lock()
		left := len(w.log.pending)
		w.mu.Unlock()
		if left == 0 {
			return
		}
	}
	t.Fatal("still not committed after 10,000 steps")
}

func numbered(i int) string { return fmt.Sprintf("record %d %0*d", i, i%700, i) }

func TestReopenReplaysInOrder(t *testing.T) {
	fsys := vfs.NewMem()
	w := open(t, fsys)
	c, _ := claim(t, w, 1)
	other, _ := claim(t, w, 2)
	var want []string
	var at []journal.Position
	for i := range 500 {
		want = append(want, numbered(i))
		at = append(at, appendOne(t, w, c, want[i]))
		appendOne(t, w, other, "other")
		if i%7 == 0 {
			commit(t, w)
		}
	}
	check := func(when string) {
		t.Helper()
		for i, p := range at {
			b, err := journal.ReadOne(ctx, w, p, nil)
			if err != nil || string(b) != want[i] {
				t.Fatalf("%s: record %d: got %q, %v", when, i, b, err)
			}
		}
	}
	check("before close")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = open(t, fsys)
	check("after reopening")
	c2, got := claim(t, w, 1)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("replayed %d records, want %d, or others", len(got), len(want))
	}
	if c2.Epoch != c.Epoch+1 {
		t.Fatalf("epoch %d after %d", c2.Epoch, c.Epoch)
	}
}
