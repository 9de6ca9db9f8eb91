// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

func flip(t *testing.T, disk *vfs.Mem, name string, bit int64) {
	t.Helper()
	if err := vfs.NewFault(disk).FlipBit(name, bit); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsToldFromATornTail damages each batch of a store whose process was
// killed. All but the last are known to have been synced, by those behind them:
// the store refuses to open and says where. The last may as well have torn, and
// is cut off.
func TestDamageIsToldFromATornTail(t *testing.T) {
	const batches = 12
	disk := vfs.NewMem()
	w := open(t, disk)
	c, _ := claim(t, w, 1)
	var at [batches]journal.Position
	for i := range at {
		at[i] = appendOne(t, w, c, numbered(i))
		commit(t, w)
	}
	for i, p := range at {
		off := int64(p) % (16 << 10)
		for where, bit := range map[string]int64{"header": (off - format.BatchHeader + 12) * 8, "payload": (off + format.FrameHeader) * 8} {
			killed := disk.CrashClone(0)
			flip(t, killed, store.SegmentName(1), bit)
			w, err := Open(killed, Options{})
			if i == batches-1 {
				if err != nil {
					t.Errorf("%s of the last batch: %v", where, err)
					continue
				}
				if _, got, err := replayed(w, 1); err != nil || len(got) != batches-1 {
					t.Errorf("%s of the last batch: %d records, %v, want %d", where, len(got), err, batches-1)
				}
				continue
			}
			damage, ok := errors.AsType[*format.DamageError](err)
			if !ok || damage.File != store.SegmentName(1) || damage.Offset/512 < uint64(off-format.BatchHeader)/512 || damage.Offset > uint64(off) {
				t.Errorf("%s of batch %d at %d: %v, want damage there", where, i, off, err)
			}
		}
	}
}

// The last batch of a log is damaged, and the manifest knows that it was synced.
// What is whole in it is kept.
func TestRepairKeepsWhatIsWholeAtTheEnd(t *testing.T) {
	for _, inNext := range []bool{false, true} {
		disk := vfs.NewMem()
		w := open(t, disk)
		c, _ := claim(t, w, 1)
		before := 0
		for ; inNext && w.log.free() >= 700; before++ {
			appendOne(t, w, c, numbered(600))
			commit(t, w)
		}
		var at [4]journal.Position
		payloads := [][]byte{[]byte(numbered(400)), []byte(numbered(401)), []byte(numbered(402)), []byte(numbered(403))}
		if err := w.Append(c, &journal.Group{Records: payloads, At: at[:]}); err != nil {
			t.Fatal(err)
		}
		commit(t, w)
		if _, err := w.writeMark(); err != nil {
			t.Fatal(err)
		}
		killed := disk.CrashClone(0)
		if c.Segment(at[0]) > 1 != inNext {
			t.Fatalf("the group is in segment %d", c.Segment(at[0]))
		}
		flip(t, killed, store.SegmentName(c.Segment(at[1])), int64(uint64(at[1])%c.SegmentSize+format.FrameHeader+9)*8)
		if _, err := Open(killed.CrashClone(0), Options{}); !errors.Is(err, journal.ErrCorrupt) {
			t.Fatalf("open: %v, want %v", err, journal.ErrCorrupt)
		}
		done, err := repair.Repair(killed, repair.DropDamaged)
		if err != nil || len(done.Dropped) != 1 {
			t.Fatalf("repair: %+v, %v", done, err)
		}
		if _, err := repair.Verify(killed); err != nil {
			t.Fatalf("verify after the repair: %v", err)
		}
		w = open(t, killed)
		for _, i := range []int{0, 2, 3} {
			if got, err := journal.ReadOne(ctx, w, at[i], nil); err != nil || string(got) != string(payloads[i]) {
				t.Errorf("in the next segment %v: record %d: %.20q, %v", inNext, i, got, err)
			}
		}
		isLost := func(rec journal.Record) bool { return rec.Lost == 1 }
		c, got, err := replayed(w, 1)
		if at := slices.IndexFunc(got, isLost); at != before+1 {
			t.Errorf("in the next segment %v: record %d is said to be lost, want %d", inNext, at, before+1)
		}
		if got = slices.DeleteFunc(got, isLost); err != nil || len(got) != before+3 {
			t.Errorf("in the next segment %v: replayed %d records, %v, want %d", inNext, len(got), err, before+3)
		}
		appendOne(t, w, c, "goes on")
		commit(t, w)
		if _, got, err := replayed(w, 1); err != nil || len(slices.DeleteFunc(got, isLost)) != before+4 {
			t.Errorf("in the next segment %v: replayed %d records at last, %v, want %d", inNext, len(got), err, before+4)
		}
	}
}

// A file that is cut while it is in use is damaged, and its records are not reported as freed.
func TestReadOfFileThatWasCut(t *testing.T) {
	disk := vfs.NewMem()
	w := open(t, disk)
	c, _ := claim(t, w, 1)
	at := appendOne(t, w, c, numbered(600))
	large := appendOne(t, w, c, string(make([]byte, 2*store.FirstRead)))
	commit(t, w)
	for _, p := range []journal.Position{large, at} {
		file, err := disk.Open(store.SegmentName(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(int64(p)%(16<<10) + 100); err != nil {
			t.Fatal(err)
		}
		if _, err := journal.ReadOne(ctx, w, p, nil); !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("read at %d: %v, want %v", p, err, journal.ErrCorrupt)
		}
	}
}
