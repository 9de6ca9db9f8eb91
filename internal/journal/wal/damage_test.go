// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// stored is a store that was closed in good order, and what is in it.
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
	c, _ := claim(t, w, 1)
	fill := func(upTo uint64) journal.Position {
		for i := 0; ; i++ {
			at := appendOne(t, w, c, numbered(i*37))
			s.records[at] = numbered(i * 37)
			s.order = append(s.order, at)
			if i%5 == 0 {
				commit(t, w)
			}
			if c.Block(at) >= upTo {
				return at
			}
		}
	}
	from := fill(4)
	keep := journal.Keep{From: from, Blocks: []uint64{2}}
	if err := w.Truncate(c, keep); err != nil {
		t.Fatal(err)
	}
	fill(7)
	maps.DeleteFunc(s.records, func(at journal.Position, _ string) bool { return at < from && c.Block(at) != 2 })
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
	if err := st.survey(); err != nil {
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
	b, err := st.manifest.encode()
	if err != nil {
		t.Fatal(err)
	}
	mark(manifestName, 0, uint64(len(b)))
	mark(manifestCopy, 0, uint64(len(b)))
	for _, sg := range st.segments[:st.last+1] {
		name := segmentName(sg.number)
		mark(name, 0, headerLength)
		mark(name, headerCopy, headerCopy+headerLength)
		mark(name, headerSize, sg.end)
	}
	return live
}

// wantAll opens the store and reads everything.
func (s stored) wantAll(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	w, err := Open(disk.CrashClone(0), Options{})
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
		if b, err := w.Read(at, nil); err != nil || string(b) != want {
			t.Errorf("harmless, and yet: record at %d: %.20q, %v", at, b, err)
		}
	}
}

// wantNothingElse makes sure that nothing wrong is served.
func (s stored) wantNothingElse(t *testing.T, disk *vfs.Mem) {
	t.Helper()
	w, err := Open(disk, Options{})
	if err != nil {
		return
	}
	defer w.Close()
	for at, want := range s.records {
		if b, err := w.Read(at, nil); err == nil && string(b) != want {
			t.Errorf("read at %d: served %.20q for %.20q", at, b, want)
		}
	}
	_, records, err := journal.ClaimOne(w, 1)
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
	off = max(off, headerSize)
	file, err := disk.Open(segmentName(uint64(p) / (16 << 10)))
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
		if begin := int64(q) - base; begin < off+n && off < begin+int64(frameSize(len(payload))) {
			hit[q] = true
		}
	}
}

func (s stored) wantRest(t *testing.T, disk *vfs.Mem, hit map[journal.Position]bool) {
	t.Helper()
	w := open(t, disk)
	for at, want := range s.records {
		b, err := w.Read(at, nil)
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
	for _, rec := range got {
		if s.records[rec.At] != string(rec.Payload) {
			t.Errorf("replayed %.20q at %d", rec.Payload, rec.At)
		}
	}
	if want := len(s.order) - len(hit); len(got) < want {
		t.Errorf("replayed %d records, want %d or more", len(got), want)
	}
	appendOne(t, w, c, "goes on")
	commit(t, w)
}

func TestRepairOfWholeFiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(*testing.T, *vfs.Mem)
	}{
		{"manifests garbled", func(t *testing.T, d *vfs.Mem) { flip(t, d, manifestName, 333); flip(t, d, manifestCopy, 333) }},
		{"manifests missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, manifestName); remove(t, d, manifestCopy) }},
		{"one header", func(t *testing.T, d *vfs.Mem) { flip(t, d, segmentName(5), 77) }},
		{"both headers", func(t *testing.T, d *vfs.Mem) {
			flip(t, d, segmentName(5), 77)
			flip(t, d, segmentName(5), headerCopy*8+77)
		}},
		{"segment missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, segmentName(5)) }},
		{"kept block missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, segmentName(2)) }},
		{"last segment missing", func(t *testing.T, d *vfs.Mem) { remove(t, d, segmentName(7)) }},
		{"segment cut short", func(t *testing.T, d *vfs.Mem) { cut(t, d, segmentName(6), 9000) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := makeStored(t)
			disk := s.disk.CrashClone(0)
			tt.damage(t, disk)
			if _, err := Verify(disk); !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("verify: %v, want %v", err, journal.ErrCorrupt)
			}
			w, err := Open(disk, Options{})
			if err == nil {
				_, _, err = replayed(w, 1)
				w.Close()
			}
			if !errors.Is(err, journal.ErrCorrupt) && tt.name != "one header" {
				t.Errorf("open and claim: %v, want %v", err, journal.ErrCorrupt)
			}
			if _, err := Repair(disk, 0); err == nil {
				t.Error("repair without being told what it may do: no error")
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
		for where, bit := range map[string]int64{"header": (off - batchHeader + 12) * 8, "payload": (off + frameHeader) * 8} {
			killed := disk.CrashClone(0)
			flip(t, killed, segmentName(1), bit)
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
			damage, ok := errors.AsType[*DamageError](err)
			if !ok || damage.File != segmentName(1) || damage.Offset/512 < uint64(off-batchHeader)/512 || damage.Offset > uint64(off) {
				t.Errorf("%s of batch %d at %d: %v, want damage there", where, i, off, err)
			}
		}
	}
}
