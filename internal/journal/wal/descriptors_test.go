// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A11: a process that has run out of file descriptors cannot make segments for a
// while. That is not a failure of the log: it refuses senders, uses up what is
// ready, tries again, and goes on as before once there are descriptors.
func TestNoDescriptorIsNotAFailure(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	commit(t, w)
	var status journal.Status
	w.Watch(c, func(s journal.Status) { status = s })

	fault.Before(func(op vfs.Op, name string) error {
		if op == vfs.OpCreate || op == vfs.OpOpen {
			return vfs.ErrTooManyFiles
		}
		return nil
	})
	var want []string
	for {
		var at [1]journal.Position
		g := &journal.Group{Records: [][]byte{[]byte(numbered(len(want) % 600))}, At: at[:]}
		err := w.Append(c, g)
		if errors.Is(err, journal.ErrFull) {
			break
		}
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		want = append(want, string(g.Records[0]))
		commit(t, w)
	}
	commit(t, w)
	if !status.Full || status.Err != nil {
		t.Fatalf("no segment can be made, and the status is %+v", status)
	}
	// Truncating needs no descriptor either.
	if err := w.Truncate(ctx, c, journal.Retain{From: w.shards[1].From}); err != nil {
		t.Fatalf("truncate: %v", err)
	}

	fault.Before(nil)
	commit(t, w)
	if status.Full || status.Err != nil {
		t.Fatalf("there are descriptors again, and the status is %+v", status)
	}
	want = append(want, "goes on")
	appendOne(t, w, c, "goes on")
	commit(t, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got := claim(t, open(t, fault), 1); len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
}
