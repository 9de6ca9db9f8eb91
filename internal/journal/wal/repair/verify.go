// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"
	"fmt"
	"iter"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// DamageError says where stored bytes are not what was written.
type DamageError = format.DamageError

// Report is what Verify found.
type Report struct {
	Segments int
	Batches  int
	Records  uint64           // of shards
	Bytes    uint64           // in batches
	End      journal.Position // behind the last batch
	Problems []error          // each a *DamageError
	// Notes are what is not as it should be and does no harm, such as the loss
	// of one of the two files of the manifest: the next start sees to it.
	Notes []error
}

// Exists reports whether there is a store, or what is left of one, in the root of
// fsys. It changes nothing, and takes no lock.
func Exists(fsys vfs.FS) (bool, error) {
	files, err := store.List(fsys)
	return files.Manifest || len(files.Segments) > 0, err
}

// Verify checks every byte that matters in a store that is not running: the
// manifest, and of every segment that it needs the header and all batches, that
// none is missing, and that the log reaches as far as it was synced. The error
// wraps journal.ErrCorrupt if there are problems.
func Verify(fsys vfs.FS) (r Report, err error) {
	st, err := inspect(fsys)
	if st != nil {
		defer func() { err = errors.Join(err, st.close()) }()
	}
	if err != nil {
		if damage, ok := errors.AsType[*format.DamageError](err); ok {
			r.Problems = append(r.Problems, damage)
		}
		return r, err
	}
	if err := st.scanAll(); err != nil {
		if damage, ok := errors.AsType[*format.DamageError](err); ok {
			r.Problems = append(r.Problems, damage)
		}
		return r, fmt.Errorf("verify: %w", err)
	}
	return st.report()
}

// report judges what scanAll found.
func (st *offline) report() (Report, error) {
	r := Report{Notes: st.notes}
	from, _ := st.manifest.Needs()
	r.End = journal.Position(from*st.manifest.SegmentSize + format.HeaderSize)
	for i, s := range st.segments {
		if s.err != nil {
			// A missing file behind the last batch is one that was being made,
			// unless the log goes on in it: see below.
			if i <= st.last || s.number < from || !errors.Is(s.err, format.ErrMissing) {
				r.Problems = append(r.Problems, s.err)
			}
			continue
		}
		r.Segments++
		r.Batches += s.batches
		r.Records += s.records
		r.Bytes += s.end - format.HeaderSize
		for _, d := range s.damaged {
			r.Problems = append(r.Problems, d.Err)
		}
		if !s.sealed && (i < st.last || s.number < from) {
			r.Problems = append(r.Problems, s.seg.Damage(s.end, errors.Join(format.ErrNoSeal, s.rest)))
		}
		if i > 0 && i <= st.last {
			before := st.segments[i-1]
			if before.number+1 == s.number && before.batches > 0 && s.batches > 0 && s.first != before.next {
				r.Problems = append(r.Problems, s.seg.Damage(format.HeaderSize, format.ErrNumber))
			}
		}
		if i == st.last {
			r.End = s.seg.Position(s.end)
		}
	}
	if n, missing := st.next(); missing && (st.last < 0 || st.manifest.Version > 1) {
		r.Problems = append(r.Problems, &format.DamageError{File: store.SegmentName(n), Offset: 0, Err: format.ErrMissNext})
	}
	if at := st.manifest.Synced; r.End < at {
		n := st.manifest.Segment(at)
		r.Problems = append(r.Problems, &format.DamageError{File: store.SegmentName(n), Offset: uint64(at) - n*st.manifest.SegmentSize, Err: format.ErrShort})
	}
	if len(r.Problems) > 0 {
		return r, fmt.Errorf("verify: %d problems, the first: %w", len(r.Problems), r.Problems[0])
	}
	return r, nil
}

// Entry is a record as Dump shows it.
type Entry struct {
	File    string
	At      journal.Position
	Shard   journal.Shard
	Epoch   uint32
	Number  uint64
	Payload []byte // valid until the next entry
	// Manifest says that the log has put it there for itself, so that a manifest
	// that is lost can be found again.
	Manifest bool
}

// Dump yields every record in the segments of a store that is not running, also
// those that no shard needs any more but that are still there. Damage is yielded
// as an error that wraps journal.ErrCorrupt; the sequence goes on behind it.
func Dump(fsys vfs.FS) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lock, err := fsys.Lock(format.LockName)
		if err != nil {
			yield(Entry{}, fmt.Errorf("dump: %w", err))
			return
		}
		defer lock.Close() // nothing was written
		files, err := store.List(fsys)
		if err != nil {
			yield(Entry{}, fmt.Errorf("dump: %w", err))
			return
		}
		for _, n := range files.Segments {
			seg, err := store.OpenSegment(fsys, n, 0)
			if errors.Is(err, store.ErrRecycled) {
				continue
			}
			if err != nil {
				if !yield(Entry{}, err) {
					return
				}
				continue
			}
			more := dump(seg, yield)
			if err := seg.File.Close(); err != nil && more {
				more = yield(Entry{}, err)
			}
			if !more {
				return
			}
		}
	}
}

// dump yields the records of one segment and reports whether more are wanted.
func dump(s *store.Segment, yield func(Entry, error) bool) bool {
	for sp, err := range s.Spans() {
		if err != nil {
			return yield(Entry{}, err)
		}
		if sp.Rest {
			break // the end, or what a crash tore
		}
		if sp.Err != nil {
			if !yield(Entry{}, sp.Err) {
				return false
			}
			continue
		}
		for at, f := range format.Frames(sp.Body) {
			if f.Shard == format.TombstoneShard {
				continue
			}
			e := Entry{s.Name, s.Position(sp.Off + uint64(at)), f.Shard, f.Epoch, f.Number, f.Payload, f.Shard == format.OwnShard}
			if !yield(e, nil) {
				return false
			}
		}
	}
	return true
}
