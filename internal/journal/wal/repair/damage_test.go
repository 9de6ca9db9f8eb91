// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// stored is a store that was closed cleanly, and what is in it.
type stored struct {
	disk    *vfs.Mem
	records map[journal.Position]string // every one that is needed
	order   []journal.Position          // of shard 1, from where its replay starts
}

// makeStored makes a store of a few segments: recycled ones among them, and one
// that is kept only to be read.
func makeStored(t testing.TB) stored {
	t.Helper()
	s := stored{disk: vfs.NewMem(), records: make(map[journal.Position]string)}
	w := open(t, s.disk)
	c := claim(t, w, 1)
	fill := func(upTo uint64) journal.Position {
		for i := 0; ; i++ {
			at := appendOne(t, w, c, numbered(i*37))
			s.records[at] = numbered(i * 37)
			s.order = append(s.order, at)
			if i%5 == 0 {
				commit(t, w)
			}
			if c.Segment(at) >= upTo {
				return at
			}
		}
	}
	from := fill(4)
	keep := journal.Retain{From: from, Segments: []uint64{2}}
	if err := w.Truncate(ctx, c, keep); err != nil {
		t.Fatal(err)
	}
	fill(7)
	maps.DeleteFunc(s.records, func(at journal.Position, _ string) bool { return at < from && c.Segment(at) != 2 })
	s.order = slices.DeleteFunc(s.order, func(at journal.Position) bool { return at < from })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.disk.SyncDir("."); err != nil { // clones are to have every file
		t.Fatal(err)
	}
	return s
}

// TestFlippedBits damages one bit at a time. A flip is found by Verify, or it
// lies where there is nothing that matters: then the store must open and serve
// every record as it was written. Whatever happens, no record may be served
// that was not written.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	s := makeStored(t)
	if _, err := Verify(s.disk); err != nil {
		t.Fatalf("verify before any damage: %v", err)
	}
	live := s.liveBytes(t)
	rng := rand.New(rand.NewPCG(5, 6))
	names, err := s.disk.List(".")
	if err != nil {
		t.Fatal(err)
	}
	found, harmless, inLive := 0, 0, 0
	for range flips {
		disk := s.disk.CrashClone(0)
		name := names[rng.IntN(len(names))]
		file, err := disk.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		size, err := file.Size()
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			continue
		}
		bit := rng.Int64N(size * 8)
		if err := vfs.NewFault(disk).FlipBit(name, bit); err != nil {
			t.Fatal(err)
		}
		r, err := Verify(disk)
		isLive := live[name] != nil && live[name][bit/8]
		switch {
		case errors.Is(err, journal.ErrCorrupt):
			found++
		case len(r.Notes) > 0:
			found++ // one of the manifests, and the other one does
			s.wantAll(t, disk)
		case err != nil:
			t.Fatalf("bit %d of %s: verify: %v", bit, name, err)
		case isLive:
			t.Errorf("bit %d of %s, which matters: verify found nothing", bit, name)
		default:
			harmless++
			s.wantAll(t, disk)
		}
		if isLive {
			inLive++
		}
		s.wantNothingElse(t, disk)
		if t.Failed() {
			t.Fatalf("bit %d of %s", bit, name)
		}
	}
	t.Logf("%d flips: %d found, %d where nothing is; %d of all were in bytes that matter", found+harmless, found, harmless, inLive)
}

// liveBytes marks the bytes that matter: the manifest, and of each needed
// segment the two copies of the header and the batches.
func (s stored) liveBytes(t *testing.T) map[string][]bool {
	t.Helper()
	st, err := inspect(s.disk)
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()
	if err := st.scanAll(); err != nil {
		t.Fatal(err)
	}
	live := make(map[string][]bool)
	mark := func(name string, from, to uint64) {
		if uint64(len(live[name])) < to {
			live[name] = append(live[name], make([]bool, max(64<<10, to))...)
		}
		for i := from; i < to; i++ {
			live[name][i] = true
		}
	}
	b, err := st.manifest.Encode()
	if err != nil {
		t.Fatal(err)
	}
	mark(format.ManifestName, 0, uint64(len(b)))
	mark(format.ManifestCopy, 0, uint64(len(b)))
	for _, sg := range st.segments[:st.last+1] {
		name := store.SegmentName(sg.number)
		mark(name, 0, format.HeaderLength)
		mark(name, format.HeaderCopy, format.HeaderCopy+format.HeaderLength)
		mark(name, format.HeaderSize, sg.end)
	}
	return live
}

// wantAll opens the store and reads everything.
func (s stored) wantAll(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	w, err := wal.Open(disk.CrashClone(0), wal.Options{})
	if err != nil {
		t.Errorf("harmless, and yet: %v", err)
		return
	}
	defer w.Close()
	_, got, err := replayed(w, 1)
	if err != nil || len(got) != len(s.order) {
		t.Errorf("harmless, and yet: %d of %d records, %v", len(got), len(s.order), err)
	}
	for at, want := range s.records {
		if b, err := journal.ReadOne(ctx, w, at, nil); err != nil || string(b) != want {
			t.Errorf("harmless, and yet: record at %d: %.20q, %v", at, b, err)
		}
	}
}

// wantNothingElse makes sure that nothing wrong is served.
func (s stored) wantNothingElse(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	w, err := wal.Open(disk, wal.Options{})
	if err != nil {
		return
	}
	defer w.Close()
	for at, want := range s.records {
		if b, err := journal.ReadOne(ctx, w, at, nil); err == nil && string(b) != want {
			t.Errorf("read at %d: served %.20q for %.20q", at, b, want)
		}
	}
	_, records, err := journal.ClaimOne(ctx, w, 1)
	if err != nil {
		return
	}
	i := 0
	for rec, err := range records {
		if err != nil {
			return
		}
		if i >= len(s.order) || rec.At != s.order[i] || string(rec.Payload) != s.records[rec.At] {
			t.Errorf("replay: served %.20q at %d", rec.Payload, rec.At)
			return
		}
		i++
	}
	if i < len(s.order) {
		t.Errorf("replay: ended after %d of %d records, without an error", i, len(s.order))
	}
}

// TestRepairDropsOnlyWhatIsDamaged damages a store in random places, repairs it,
// and looks for every record that was not hit.
func TestRepairDropsOnlyWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s := makeStored(t)
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			disk := s.disk.CrashClone(0)
			hit := make(map[journal.Position]bool)
			for range 1 + rng.IntN(4) {
				s.smear(t, disk, rng, hit)
			}
			_, bad := Verify(disk)
			done, err := Repair(disk, DropDamaged)
			if err != nil {
				t.Fatalf("repair: %v", err)
			}
			if bad != nil && len(done.Dropped) == 0 {
				t.Errorf("there was damage (%v), and nothing was reported dropped", bad)
			}
			if _, err := Verify(disk); err != nil {
				t.Fatalf("verify after repair: %v", err)
			}
			s.wantRest(t, disk, hit)
		})
	}
}

// smear writes garbage over a few bytes of batches and notes the records hit.
func (s stored) smear(t *testing.T, disk *vfs.Mem, rng *rand.Rand, hit map[journal.Position]bool) {
	t.Helper()
	at := slices.Sorted(maps.Keys(s.records))
	p := at[rng.IntN(len(at))]
	off := int64(p)%(16<<10) + rng.Int64N(100) - 50
	off = max(off, format.HeaderSize)
	file, err := disk.Open(store.SegmentName(uint64(p) / (16 << 10)))
	if err != nil {
		t.Fatal(err)
	}
	n := 1 + rng.Int64N(60)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	if _, err := file.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	base := int64(p) / (16 << 10) * (16 << 10)
	for q, payload := range s.records {
		if begin := int64(q) - base; begin < off+n && off < begin+int64(format.FrameSize(len(payload))) {
			hit[q] = true
		}
	}
}

func (s stored) wantRest(t *testing.T, disk *vfs.Mem, hit map[journal.Position]bool) {
	t.Helper()
	w := open(t, disk)
	for at, want := range s.records {
		b, err := journal.ReadOne(ctx, w, at, nil)
		if err == nil && string(b) != want {
			t.Errorf("at %d: %.20q, want %.20q", at, b, want)
		}
		if err != nil && !hit[at] {
			t.Errorf("at %d, which was not damaged: %v", at, err)
		}
	}
	c, got, err := replayed(w, 1)
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	next, whole, lost := 0, 0, false
	for _, rec := range got {
		if rec.Lost > 0 {
			lost = true
			continue
		}
		if s.records[rec.At] != string(rec.Payload) {
			t.Errorf("replayed %.20q at %d", rec.Payload, rec.At)
		}
		for ; next < len(s.order) && s.order[next] < rec.At; next++ {
			if !lost {
				t.Errorf("record at %d is missing before that at %d, and nothing says so", s.order[next], rec.At)
			}
		}
		next, whole, lost = next+1, whole+1, false
	}
	if want := len(s.order) - len(hit); whole < want {
		t.Errorf("replayed %d records, want %d or more", whole, want)
	}
	appendOne(t, w, c, "goes on")
	commit(t, w)
}

func TestRepairOfWholeFiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, *vfs.Mem)
	}{
		{"manifests garbled", func(t *testing.T, d *vfs.Mem) {
			flip(t, d, format.ManifestName, 333)
			flip(t, d, format.ManifestCopy, 333)
		}},
		{"manifests missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, format.ManifestName); remove(t, d, format.ManifestCopy) }},
		{"one header", func(t *testing.T, d *vfs.Mem) { flip(t, d, store.SegmentName(5), 77) }},
		{"both headers", func(t *testing.T, d *vfs.Mem) {
			flip(t, d, store.SegmentName(5), 77)
			flip(t, d, store.SegmentName(5), format.HeaderCopy*8+77)
		}},
		{"segment missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, store.SegmentName(5)) }},
		{"kept segment missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, store.SegmentName(2)) }},
		{"last segment missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, store.SegmentName(7)) }},
		{"segment cut short", func(t *testing.T, d *vfs.Mem) { cut(t, d, store.SegmentName(6), 9000) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := makeStored(t)
			disk := s.disk.CrashClone(0)
			tt.damage(t, disk)
			if _, err := Verify(disk); !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("verify: %v, want %v", err, journal.ErrCorrupt)
			}
			w, err := wal.Open(disk, wal.Options{})
			if err == nil {
				_, _, err = replayed(w, 1)
				w.Close()
			}
			if !errors.Is(err, journal.ErrCorrupt) && tt.name != "one header" {
				t.Errorf("open and claim: %v, want %v", err, journal.ErrCorrupt)
			}
			if _, err := Repair(disk, 0); err == nil {
				t.Error("repair without a mode: no error")
			}
			done, err := Repair(disk, DropDamaged)
			if err != nil {
				t.Fatalf("repair: %v", err)
			}
			t.Logf("%+v", done)
			if _, err := Verify(disk); err != nil {
				t.Fatalf("verify after repair: %v", err)
			}
			w = open(t, disk)
			c, got, err := replayed(w, 1)
			if err != nil {
				t.Fatalf("replay after repair: %v", err)
			}
			if len(got) == 0 {
				t.Error("nothing is left")
			}
			appendOne(t, w, c, "goes on")
			commit(t, w)
		})
	}
}

func flip(t *testing.T, disk *vfs.Mem, name string, bit int64) {
	t.Helper()
	if err := vfs.NewFault(disk).FlipBit(name, bit); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, disk *vfs.Mem, name string) {
	t.Helper()
	if err := disk.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir("."); err != nil {
		t.Fatal(err)
	}
}

func cut(t *testing.T, disk *vfs.Mem, name string, size int64) {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// A disk that fails to read once has damaged nothing: repair must not drop what it
// could not look at.
func TestRepairDropsNothingThatItCouldNotRead(t *testing.T) {
	s := makeStored(t)
	for n := 1; ; n++ {
		disk := s.disk.CrashClone(0)
		fault := vfs.NewFault(disk)
		fault.FailNth(vfs.OpRead, n, errIO)
		done, err := Repair(fault, DropDamaged)
		if !errors.Is(err, errIO) && len(done.Dropped) > 0 {
			t.Errorf("read %d fails: dropped %+v", n, done.Dropped)
		}
		s.wantAll(t, disk)
		if t.Failed() || fault.Calls(vfs.OpRead) < n {
			t.Logf("%d reads", n)
			return
		}
	}
}

// TestForgedBatches changes the headers of batches, and makes their checksums right
// again, as no disk does and an enemy might. Nothing may panic or take much memory,
// and what repair calls repaired must be sound.
func TestForgedBatches(t *testing.T) {
	t.Parallel()
	s := makeStored(t)
	refused := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		disk := s.disk.CrashClone(0)
		for range 1 + rng.IntN(2) {
			s.forge(t, disk, rng)
		}
		for range Dump(disk) {
			continue
		}
		_, _ = Verify(disk) // whatever it says
		if w, err := wal.Open(disk.CrashClone(0), wal.Options{}); err == nil {
			_, _, _ = replayed(w, 1)
			for at := range s.records {
				_, _ = journal.ReadOne(ctx, w, at, nil)
			}
			_ = w.Close()
		}
		if _, err := Repair(disk, DropDamaged); err != nil {
			refused++
			continue
		}
		if _, err := Verify(disk); err != nil {
			t.Errorf("seed %d: verify after a repair: %v", seed, err)
		}
	}
	t.Logf("%d could not be repaired", refused)
}

// forge changes one field of one batch.
func (s stored) forge(t *testing.T, disk *vfs.Mem, rng *rand.Rand) {
	t.Helper()
	number := []uint64{2, 4, 5, 6, 7}[rng.IntN(5)]
	seg, err := store.OpenSegment(disk, number, 0)
	if err != nil {
		t.Fatal(err)
	}
	var batches []store.Span
	for sp, err := range seg.Spans() {
		if err == nil && sp.Err == nil {
			sp.Body = nil
			batches = append(batches, sp)
		}
	}
	if len(batches) == 0 {
		return
	}
	sp := batches[rng.IntN(len(batches))]
	odd := []uint64{0, 1, 40, 48, 1 << 10, 1<<31 - 1, 1<<32 - 8, 1<<63 - 1, 1<<64 - 1, rng.Uint64N(500)}[rng.IntN(10)]
	h := sp.Head
	switch rng.IntN(6) {
	case 0:
		h.Kind = format.Kind(odd)
	case 1:
		h.Length = uint32(odd) &^ 7
	case 2:
		h.Count = uint32(odd)
	case 3:
		h.First = odd
	case 4:
		h.Kind = format.KindSeal
	case 5:
		h.Digest, h.Length = 0, format.BatchHeader // forgets its records
	}
	var b [format.BatchHeader]byte
	h.Encode(b[:], seg.Seed, sp.Off)
	if _, err := seg.File.WriteAt(b[:], int64(sp.Off)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(seg.File.Sync(), seg.File.Close()); err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file on a disk, under another name.
func copyFile(t *testing.T, disk *vfs.Mem, from, to string) {
	t.Helper()
	src, err := disk.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	size, err := src.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := src.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	dst, err := disk.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dst.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dst.Sync(), disk.SyncDir(".")); err != nil {
		t.Fatal(err)
	}
}

// A file with a high number, such as a copy that somebody made, does not make the
// tools list every number below it.
func TestStrayFileWithAHighNumber(t *testing.T) {
	const high = 200_000 // ten digits and more are as good a name
	s := makeStored(t)
	for what, damaged := range map[string]bool{"a copy": false, "garbage": true} {
		disk := s.disk.CrashClone(0)
		copyFile(t, disk, store.SegmentName(5), store.SegmentName(high))
		if damaged {
			wipe(t, disk, store.SegmentName(high))
		}
		st, err := inspect(disk)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(st.scanAll(), st.close()); err != nil {
			t.Fatal(err)
		}
		if len(st.segments) > 20 {
			t.Errorf("%s: %d segments are looked at", what, len(st.segments))
		}
		if _, err := Verify(disk); damaged != errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("%s: verify: %v", what, err)
		}
		if done, err := Repair(disk, DropDamaged); err != nil || damaged != (len(done.Dropped) == 1) {
			t.Errorf("%s: repair: %+v, %v", what, done, err)
		}
		s.wantAll(t, disk)
	}
}

// The segment of a store with another segment size is no segment of this one,
// though its number fits.
func TestSegmentOfAnotherSize(t *testing.T) {
	s := makeStored(t)
	theirs := vfs.NewMem()
	w, err := wal.Open(theirs, wal.Options{SegmentSize: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c := claim(t, w, 1)
	for c.Segment(appendOne(t, w, c, numbered(300))) < 9 {
		commit(t, w)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var b [8 << 10]byte
	from, err := theirs.Open(store.SegmentName(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	to, err := s.disk.Open(store.SegmentName(2)) // which is kept only to be read
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.WriteAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	if err := to.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(s.disk); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("verify: %v, want %v", err, journal.ErrCorrupt)
	}
	if _, err := wal.Open(s.disk.CrashClone(0), wal.Options{}); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("open: %v, want %v", err, journal.ErrCorrupt)
	}
	if done, err := Repair(s.disk, DropDamaged); err != nil || len(done.Dropped) != 1 {
		t.Errorf("repair: %+v, %v, want the segment to be dropped", done, err)
	}
	if _, err := wal.Open(s.disk, wal.Options{}); err != nil {
		t.Errorf("open after the repair: %v", err)
	}
}
