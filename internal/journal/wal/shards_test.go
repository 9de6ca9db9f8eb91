// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

func TestStoreRemembersHowManyShardsItHas(t *testing.T) {
	disk := vfs.NewMem()
	w, err := Open(disk, Options{SegmentSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Shards(); got != 0 {
		t.Fatalf("a new store has %d shards, want 0", got)
	}
	if _, _, err := journal.ClaimOne(ctx, w, 3); err != nil {
		t.Fatal(err)
	}
	w, err = Open(disk.CrashClone(0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Shards(); got != 4 {
		t.Fatalf("after a claim of shard 3 and a crash: %d shards, want 4", got)
	}
}
