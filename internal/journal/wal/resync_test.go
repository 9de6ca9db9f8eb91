// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// TestNextProcessDoesNotTrustThePageCache (A8) lets every sync fail in turn. The
// process that met the failure ends; the next one finds everything in the page
// cache, goes on from there, and then the power is cut. What the second process
// replayed was there for its owner to act on, so it must still be there, and so
// must what it appended itself.
func TestNextProcessDoesNotTrustThePageCache(t *testing.T) {
	syncs := 0
	count := vfs.NewFault(vfs.NewMem())
	count.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpSync {
			syncs++
		}
		return nil
	})
	if r := errand(count); r.err != nil {
		t.Fatal(r.err)
	}
	for n := range syncs {
		mem := vfs.NewMem()
		fault := vfs.NewFault(mem)
		fault.FailNth(vfs.OpSync, n+1, errIO)
		which := fmt.Sprint("sync ", n+1)
		first := errand(fault)
		if !errors.Is(first.err, errIO) {
			t.Fatalf("%s: the errand ended with %v, want %v", which, first.err, errIO)
		}
		if first.w != nil {
			first.w.Close() // it failed: this only ends the process
		}
		second := vfs.NewFault(mem)
		crashes := 0
		second.Before(func(op vfs.Op, name string) error {
			if changes(op) { // and the second process may be hit by the power cut, too
				crashes++
				wantAcknowledged(t, fmt.Sprintf("%s, then %s %s as call %d", which, op, name, crashes), mem.CrashClone(0), first.acknowledged)
			}
			return nil
		})
		want, err := secondLife(second)
		if err != nil {
			t.Errorf("%s: second process: %v", which, err)
			continue
		}
		for way := range uint64(4) {
			wantAcknowledged(t, fmt.Sprintf("%s, way %d", which, way), mem.CrashClone(way), want)
		}
	}
	t.Logf("%d syncs", syncs)
}

// secondLife opens a store, appends to it and returns all that a third process
// must find.
func secondLife(disk vfs.FS) ([]string, error) {
	w, err := Open(disk, Options{SegmentSize: 8 << 10})
	if err != nil {
		return nil, err
	}
	c, got, err := replayed(w, 1)
	if err != nil {
		return nil, err
	}
	var want []string
	for _, rec := range got {
		want = append(want, string(rec.Payload))
	}
	var at [1]journal.Position
	if err := w.Append(c, &journal.Group{Records: [][]byte{[]byte("second")}, At: at[:]}); err != nil {
		return nil, err
	}
	return append(want, "second"), w.flush()
}
