// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// segmentsOf returns the segment files of a log, in order.
func segmentsOf(t *testing.T, disk vfs.FS, name string) []string {
	t.Helper()
	files, err := disk.List(root + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return !strings.HasSuffix(f, ".seg") })
}

// zero overwrites a part of a file; a negative end is that of the file.
func zero(t *testing.T, disk vfs.FS, file string, from, to int64) {
	t.Helper()
	f, err := disk.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if size, err := f.Size(); err != nil {
		t.Fatal(err)
	} else if to < 0 || to > size {
		to = size
	}
	if _, err := f.WriteAt(make([]byte, max(0, to-from)), from); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever a repair had to give up, no number is given to a second event: a consumer that
// begins behind the last event that it has handled, as it or a store of its own remembers,
// gets what is sent from then on.
func TestNumbersOfLostEventsAreNotUsedAgain(t *testing.T) {
	const batches = 90
	disk := vfs.NewMem()
	s := start(t, disk, nil)
	s.create(t, "a")
	h, err := s.Hub("a")
	if err != nil {
		t.Fatal(err)
	}
	handled := make([]stream.SeqNo, 2)
	send := func(h *streamserver.Hub, partition int) stream.SeqNo {
		t.Helper()
		done := make(chan stream.SeqNo, 1)
		h.Append(&streamserver.Append{Partition: partition, Count: 3, Raw: []byte(strings.Repeat("x", 40<<10)), Done: func(first stream.SeqNo, err error) {
			if err != nil {
				t.Error(err)
			}
			done <- first
		}})
		return <-done
	}
	for i := range batches {
		p := i % 2
		handled[p] = send(h, p) + 2
		if i%5 == 0 {
			if err := h.SetCheckpoint(t.Context(), "g", group.Checkpoint{Partition: p, SeqNo: handled[p]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	segments := segmentsOf(t, disk, "a")
	dir := root + "/a/"
	lose := map[string]func(*vfs.Mem){}
	remove := func(d *vfs.Mem, files ...string) {
		for _, f := range files {
			if err := d.Remove(dir + f); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, seg := range segments {
		lose["segment "+seg] = func(d *vfs.Mem) { remove(d, seg) }
		lose["segments from "+seg] = func(d *vfs.Mem) { remove(d, segments[i:]...) }
		lose["header of "+seg] = func(d *vfs.Mem) { zero(t, d, dir+seg, 0, format.HeaderSize) }
		for at := int64(format.HeaderSize); at < 1<<20; at += 90 << 10 {
			lose[fmt.Sprintf("%s from %d", seg, at)] = func(d *vfs.Mem) { zero(t, d, dir+seg, at, -1) }
			lose[fmt.Sprintf("%s at %d", seg, at)] = func(d *vfs.Mem) { zero(t, d, dir+seg, at, at+200) }
		}
	}
	for what, how := range lose {
		t.Run(what, func(t *testing.T) {
			d := disk.CrashClone(1)
			how(d)
			if _, err := repair.Verify(vfs.Sub(d, root+"/a")); err == nil {
				return // nothing of it was in use
			}
			if _, err := repair.Repair(vfs.Sub(d, root+"/a"), repair.DropDamaged); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time it begins with what the first has written
				s := start(t, d, map[string]streamserver.Settings{"a": twoPartitions})
				h, err := s.Hub("a")
				if err != nil {
					t.Fatal(err)
				}
				for p, last := range handled {
					in, err := h.OpenReader(t.Context(), streamserver.ReaderOptions{Partition: p, Group: "g", From: stream.AfterSeq(last)})
					if err != nil {
						t.Fatalf("a reader behind event %d: %v", last, err)
					}
					first := send(h, p)
					if first <= last {
						t.Errorf("partition %d: number %d is given again, up to %d was", p, first, last)
					}
					got, err := in.Next(context.WithoutCancel(t.Context()), 1)
					if err != nil || len(got) == 0 {
						t.Fatal(got, err)
					}
					in.Close()
				}
				if err := s.stop(); err != nil {
					t.Fatal(err)
				}
				d = d.CrashClone(2)
			}
		})
	}
}
