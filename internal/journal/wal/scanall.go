// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"io"
	"iter"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// span is a stretch of a segment: a batch, or bytes that should be one.
type span struct {
	off, end uint64
	head     format.BatchHead
	body     []byte // of a batch; valid until the next span
	err      error  // why this is no batch
	rest     bool   // nothing behind it is a batch: the log, or the damage, ends here
}

// spans yields what is in the segment, up to its seal. Behind damage it goes on
// with the next batch that it can find. The error is that of the disk.
func (s *segment) spans() iter.Seq2[span, error] {
	return func(yield func(span, error) bool) {
		sc := newScanner(s, s.head.Capacity, nil)
		for {
			off := sc.off
			head, body, err := sc.next()
			switch {
			case err == nil:
				if !yield(span{off: off, end: sc.off, head: head, body: body}, nil) || head.Kind == format.KindSeal {
					return
				}
			case !errors.Is(err, journal.ErrCorrupt):
				yield(span{}, err)
				return
			default:
				_, at, found, findErr := s.findBatchAfter(off + format.Alignment)
				if findErr != nil {
					yield(span{}, findErr)
					return
				}
				bad := span{off: off, end: at, err: err}
				if !found {
					bad.end, bad.rest = s.head.Capacity, true
				}
				if !yield(bad, nil) || bad.rest {
					return
				}
				sc.off = at
			}
		}
	}
}

// scannedSegment is one needed segment as it was found.
type scannedSegment struct {
	number  uint64
	seg     *segment // nil if it cannot be read
	err     error    // why
	batches int
	records uint64 // but for the log's own
	first   uint64 // number of the first record, as far as is known
	next    uint64 // number behind the last
	end     uint64 // behind the last batch
	sealed  bool
	ends    bool   // it is not the last, so it must be sealed
	rest    error  // what is wrong behind end, if it is not sealed
	damaged []span // without bodies; the rest not among them
}

// store is a store that is not running, opened to be looked at.
type store struct {
	fs       vfs.FS
	lock     io.Closer
	files    listing
	manifest *format.Manifest
	notes    []error           // what is not as it should be, and does no harm
	segments []*scannedSegment // those needed, in order
	last     int               // index of the last with a batch; -1 if there is none
}

// inspect opens a store for the offline tools, and reads nothing yet.
func inspect(fsys vfs.FS) (*store, error) {
	lock, err := fsys.Lock(format.LockName)
	if err != nil {
		return nil, fmt.Errorf("inspect journal: %w", err)
	}
	st := &store{fs: fsys, lock: lock, last: -1}
	if err := st.readManifest(); err != nil {
		return st, fmt.Errorf("inspect journal: %w", err) // the caller closes st
	}
	return st, nil
}

func (st *store) readManifest() (err error) {
	if st.files, err = list(st.fs); err != nil {
		return err
	}
	found, err := readCopies(st.fs)
	if err != nil {
		return err
	}
	if st.manifest, _, err = found.best(); err != nil {
		return err
	}
	if st.manifest == nil {
		return &format.DamageError{File: format.ManifestName, Offset: 0, Err: format.ErrMissing}
	}
	if err := found.lost(); err != nil {
		st.notes = append(st.notes, err)
	}
	return nil
}

func (st *store) close() error {
	var errs []error
	for _, s := range st.segments {
		if s.seg != nil {
			errs = append(errs, s.seg.file.Close())
		}
	}
	return errors.Join(append(errs, st.lock.Close())...)
}

// needed returns the numbers of the segments that should be there: the blocks
// that are kept, and all from the first on up to the last that can be read. Files
// of higher numbers are looked at, too, but what lies between is not missed.
func (st *store) needed() ([]uint64, error) {
	from, blocks := st.manifest.Needs()
	numbers := slices.Sorted(func(yield func(uint64) bool) {
		for b := range blocks {
			if b < from && !yield(b) {
				return
			}
		}
	})
	last := from
	behind := st.files.segments
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
	if last-from > maxMissing+uint64(len(st.files.segments)) {
		return nil, &format.DamageError{File: segmentName(last), Offset: 0, Err: format.ErrNumber}
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
func (st *store) readable(number uint64) (bool, error) {
	seg, err := openSegment(st.fs, number, st.manifest.SegmentSize)
	if errors.Is(err, errRecycled) || errors.Is(err, journal.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, seg.file.Close()
}

// scanAll reads every segment that is needed.
func (st *store) scanAll() error {
	numbers, err := st.needed()
	if err != nil {
		return err
	}
	for i, n := range numbers {
		s := &scannedSegment{number: n, end: format.HeaderSize}
		st.segments = append(st.segments, s)
		if _, found := slices.BinarySearch(st.files.segments, n); !found {
			s.err = &format.DamageError{File: segmentName(n), Offset: 0, Err: format.ErrMissing}
			continue
		}
		seg, err := openSegment(st.fs, n, st.manifest.SegmentSize)
		switch {
		case errors.Is(err, errRecycled):
			s.err = &format.DamageError{File: segmentName(n), Offset: 0, Err: format.ErrMissing}
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
func (st *store) next() (number uint64, missing bool) {
	number, _ = st.manifest.Needs()
	if st.last >= 0 {
		last := st.segments[st.last]
		if !last.sealed {
			return last.number, false
		}
		number = last.number + 1
	} else if len(st.manifest.Shards) == 0 && len(st.files.segments) == 0 {
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
	for sp, err := range s.seg.spans() {
		switch {
		case err != nil:
			return err
		case sp.rest:
			s.rest = sp.err
		case sp.err != nil:
			s.damaged = append(s.damaged, sp)
		default:
			if s.batches == 0 {
				s.first = sp.head.First
			} else if sp.head.First != s.next && len(s.damaged) == 0 {
				s.damaged = append(s.damaged, span{off: sp.off, end: sp.off, err: s.seg.damage(sp.off, format.ErrNumber)})
			}
			s.batches++
			s.records += uint64(sp.head.Count)
			for _, f := range format.Frames(sp.body) {
				if f.Shard == format.OwnShard {
					s.records--
				}
			}
			s.next = sp.head.First + uint64(sp.head.Count)
			s.end, s.sealed = sp.end, sp.head.Kind == format.KindSeal
		}
	}
	return nil
}
