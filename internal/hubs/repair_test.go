// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// damage inverts a bit of what a log has stored as text, and reports whether it found it.
func damage(t *testing.T, disk vfs.FS, name, text string) bool {
	t.Helper()
	files, err := disk.List(root + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		path := root + "/" + name + "/" + file
		f, err := disk.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, []byte(text)); at >= 0 {
			if err := vfs.NewFault(disk).FlipBit(path, int64(at)*8); err != nil {
				t.Fatal(err)
			}
			return true
		}
	}
	return false
}

// A damaged batch in an old segment is left out, with and without a repair; all others are
// read.
func TestRepairedLogIsRead(t *testing.T) {
	const batches = 60
	body := func(i int) string { return fmt.Sprintf("batch %03d ", i) + strings.Repeat("x", 50<<10) }
	for _, repaired := range []bool{false, true} {
		disk := vfs.NewMem()
		s := start(t, disk, nil)
		s.create(t, "a")
		for i := range batches {
			s.append(t, "a", body(i))
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		if !damage(t, disk, "a", "batch 007") {
			t.Fatal("the batch is not found")
		}
		if repaired {
			if _, err := repair.Repair(vfs.Sub(disk, root+"/a"), repair.DropDamaged); err != nil {
				t.Fatal(err)
			}
		}
		s = start(t, disk, map[string]streamserver.Settings{"a": twoPartitions})
		h, err := s.Hub("a")
		if err != nil {
			t.Fatal(err)
		}
		in, err := h.OpenReader(t.Context(), streamserver.ReaderOptions{Group: "g", From: stream.Earliest()})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for len(got) < batches-1 {
			next, err := in.Next(context.WithoutCancel(t.Context()), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range next {
				if b.First != stream.SeqNo(len(got)) && b.First != stream.SeqNo(len(got)+1) {
					t.Errorf("repaired %t: event %d comes after %d others", repaired, b.First, len(got))
				}
				if string(b.Raw) != body(int(b.First)) {
					t.Errorf("repaired %t: event %d has another body", repaired, b.First)
				}
				got = append(got, string(b.Raw[:9]))
			}
		}
		in.Close()
		if strings.Contains(strings.Join(got, ","), "batch 007") {
			t.Errorf("repaired %t: the damaged batch was read", repaired)
		}
		if st, _ := s.Stats("a"); st.Damaged != 1 {
			t.Errorf("repaired %t: %d events are counted as damaged, want 1", repaired, st.Damaged)
		}
	}
}
