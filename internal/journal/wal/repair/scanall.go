// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// scannedSegment is one needed segment as it was found.
type scannedSegment struct {
	number  uint64
	seg     *store.Segment // nil if it cannot be read
	err     error          // why
	batches int
	records uint64 // but for the log's own
	first   uint64 // number of the first record, as far as is known
	next    uint64 // number behind the last
	end     uint64 // behind the last batch
	sealed  bool
	ends    bool         // it is not the last, so it must be sealed
	rest    error        // what is wrong behind end, if it is not sealed
	damaged []store.Span // without bodies; the rest not among them
}

// offline is a store that is not running, opened for inspection.
type offline struct {
	fs       vfs.FS
	lock     io.Closer
	files    store.Listing
	manifest *format.Manifest
	notes    []error           // what is not as it should be, and does no harm
	segments []*scannedSegment // those needed, in order
	last     int               // index of the last with a batch; -1 if there is none
}

// Lock takes the lock of a store, for work on the stores of event hubs below it: a broker that
// runs holds only the lock of the one above. It is vfs.ErrLocked if there is one.
func Lock(fsys vfs.FS) (io.Closer, error) { return fsys.Lock(format.LockName) }

// inspect opens a store for the offline tools, and reads nothing yet.
func inspect(fsys vfs.FS) (*offline, error) {
	lock, err := fsys.Lock(format.LockName)
	if err != nil {
		return nil, fmt.Errorf("inspect journal: %w", err)
	}
	st := &offline{fs: fsys, lock: lock, last: -1}
	if err := st.readManifest(); err != nil {
		return st, fmt.Errorf("inspect journal: %w", err) // the caller closes st
	}
	return st, nil
}

func (st *offline) readManifest() (err error) {
	if st.files, err = store.List(st.fs); err != nil {
		return err
	}
	found, err := store.ReadCopies(st.fs)
	if err != nil {
		return err
	}
	if st.manifest, _, err = found.Best(); err != nil {
		return err
	}
	if st.manifest == nil {
		return &format.DamageError{File: format.ManifestName, Offset: 0, Err: format.ErrMissing}
	}
	if err := found.Lost(); err != nil {
		st.notes = append(st.notes, err)
	}
	return nil
}

func (st *offline) close() error {
	var errs []error
	for _, s := range st.segments {
		if s.seg != nil {
			errs = append(errs, s.seg.File.Close())
		}
	}
	return errors.Join(append(errs, st.lock.Close())...)
}

// needed returns the numbers of the segments that should be there: the segments
// that are kept, and all from the first on up to the last that can be read. Files
// of higher numbers are examined, too; numbers between them may be missing.
func (st *offline) needed() ([]uint64, error) {
	from, kept := st.manifest.Needs()
	numbers := slices.Sorted(func(yield func(uint64) bool) {
		for b := range kept {
			if b < from && !yield(b) {
				return
			}
		}
	})
	last := from
	behind := st.files.Segments
	for i, n := range slices.Backward(behind) {
		ok, err := st.readable(n)
		if err != nil {
			return nil, err
		}
		if ok {
			last = max(last, n)
			behind = behind[i+1:]
			break
		}
	}
	if last-from > maxMissing+uint64(len(st.files.Segments)) {
		return nil, &format.DamageError{File: store.SegmentName(last), Offset: 0, Err: format.ErrNumber}
	}
	for n := from; n <= last; n++ {
		numbers = append(numbers, n)
	}
	for _, n := range behind {
		if n > last {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// maxMissing is how many segments may be missing before a store is beyond help.
const maxMissing = 1 << 20

// readable reports whether a segment can be opened. The error is that of the disk.
func (st *offline) readable(number uint64) (bool, error) {
	seg, err := store.OpenSegment(st.fs, number, st.manifest.SegmentSize)
	if errors.Is(err, store.ErrRecycled) || errors.Is(err, journal.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, seg.File.Close()
}

// scanAll reads every segment that is needed.
func (st *offline) scanAll() error {
	numbers, err := st.needed()
	if err != nil {
		return err
	}
	for i, n := range numbers {
		s := &scannedSegment{number: n, end: format.HeaderSize}
		st.segments = append(st.segments, s)
		if _, found := slices.BinarySearch(st.files.Segments, n); !found {
			s.err = &format.DamageError{File: store.SegmentName(n), Offset: 0, Err: format.ErrMissing}
			continue
		}
		seg, err := store.OpenSegment(st.fs, n, st.manifest.SegmentSize)
		switch {
		case errors.Is(err, store.ErrRecycled):
			s.err = &format.DamageError{File: store.SegmentName(n), Offset: 0, Err: format.ErrMissing}
		case errors.Is(err, journal.ErrCorrupt):
			s.err = err
		case err != nil:
			return err
		default:
			s.seg = seg
			if err := s.read(); err != nil {
				return err
			}
		}
		if s.batches > 0 {
			st.last = i
		}
	}
	return nil
}

// next returns the number of the segment in which the log goes on behind the last
// batch, and whether it is missing: see checkNext.
func (st *offline) next() (number uint64, missing bool) {
	number, _ = st.manifest.Needs()
	if st.last >= 0 {
		last := st.segments[st.last]
		if !last.sealed {
			return last.number, false
		}
		number = last.number + 1
	} else if len(st.manifest.Shards) == 0 && len(st.files.Segments) == 0 {
		return number, false // a new store
	}
	for _, s := range st.segments {
		if s.number == number {
			return number, s.seg == nil
		}
	}
	return number, true
}

// read goes through the segment.
func (s *scannedSegment) read() error {
	for sp, err := range s.seg.Spans() {
		switch {
		case err != nil:
			return err
		case sp.Rest:
			s.rest = sp.Err
		case sp.Err != nil:
			s.damaged = append(s.damaged, sp)
		default:
			if s.batches == 0 {
				s.first = sp.Head.First
			} else if sp.Head.First != s.next && len(s.damaged) == 0 {
				s.damaged = append(s.damaged, store.Span{Off: sp.Off, End: sp.Off, Err: s.seg.Damage(sp.Off, format.ErrNumber)})
			}
			s.batches++
			s.records += uint64(sp.Head.Count)
			for _, f := range format.Frames(sp.Body) {
				if f.Shard == format.OwnShard {
					s.records--
				}
			}
			s.next = sp.Head.First + uint64(sp.Head.Count)
			s.end, s.sealed = sp.End, sp.Head.Kind == format.KindSeal
		}
	}
	return nil
}
