// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"maps"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/notify"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Open recovers the store in the root of fsys, or makes a new one. A batch that
// a crash left unfinished is cut off: nobody was told of it. Damage to anything
// that was synced is refused, with a DamageError that says where. Of the log
// only the last segment is read here; Claim reads the rest.
func Open(fsys vfs.FS, opts Options) (*WAL, error) {
	if err := fsys.MkdirAll("."); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	lock, err := fsys.Lock(format.LockName)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	w := &WAL{
		fs: fsys, lock: lock,
		manifestToken: make(chan struct{}, 1),
		segmentToken:  make(chan struct{}, 1),
		writeToken:    make(chan struct{}, 1),
		wake:          notify.New(),
		committed:     notify.New(),
		low:           notify.New(),
		shards:        make(map[journal.Shard]*shard),
		segs:          make(map[uint64]*segment),
	}
	w.unsynced = cmp.Or(opts.Unsynced, defaultUnsynced)
	if err := w.recover(cmp.Or(opts.SegmentSize, defaultSegmentSize)); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), w.release())
	}
	return w, nil
}

func (w *WAL) recover(block uint64) error {
	files, err := list(w.fs)
	if err != nil {
		return err
	}
	found, err := readCopies(w.fs)
	if err != nil {
		return err
	}
	m, best, err := found.best()
	if err == nil && m == nil {
		m, err = newStore(w.fs, files, block)
	}
	if err != nil {
		return err
	}
	w.copies.fs = w.fs
	if m.Version > 1 { // version 1 was renamed when it was synced
		if err := w.copies.secure(m, best); err != nil {
			return err
		}
	}
	w.block = m.SegmentSize
	w.look()
	for n, s := range m.Shards {
		w.shards[n] = &shard{number: n, ShardManifest: *s}
	}
	end, err := w.openSegments(m, files)
	if err != nil {
		return err
	}
	if err := w.tidy(files); err != nil {
		return err
	}
	if end.seg == nil {
		from, _ := m.Needs()
		if end.seg, err = w.firstSegment(from); err != nil {
			return err
		}
		end.off, end.last = format.HeaderSize, format.HeaderSize
	}
	if err := w.resume(end); err != nil {
		return err
	}
	if err := w.openManifest(m, best); err != nil {
		return err
	}
	return w.fillReserve()
}

// openManifest makes both files of the manifest whole. It comes behind resume, since
// a manifest of this version promises what a store of an older one did not; and
// before the reserve, which takes what is left of the disk.
func (w *WAL) openManifest(m *format.Manifest, best int) error {
	for {
		err := w.copies.open(m, best)
		w.generation, w.marked = m.Generation, m.Synced
		if !errors.Is(err, vfs.ErrNoSpace) || !w.giveUpSpare() {
			return err
		}
	}
}

// listing is what the directory of a store holds.
type listing struct {
	segments []uint64 // in order
	spares   []string
	manifest bool // either file of it is there
}

func list(fsys vfs.FS) (listing, error) {
	names, err := fsys.List(".")
	if err != nil {
		return listing{}, fmt.Errorf("list files: %w", err)
	}
	var l listing
	for _, name := range names {
		if n, ok := segmentNumber(name); ok {
			l.segments = append(l.segments, n)
		} else if strings.HasSuffix(name, spareSuffix) || strings.HasSuffix(name, reserveSuffix) {
			l.spares = append(l.spares, name)
		} else if name == format.ManifestName || name == format.ManifestCopy {
			l.manifest = true
		}
	}
	slices.Sort(l.segments)
	return l, nil
}

// newStore makes the manifest of a new store. It comes before any segment, so
// segments without one are the remains of a store.
func newStore(fsys vfs.FS, files listing, block uint64) (*format.Manifest, error) {
	if len(files.segments) > 0 {
		return nil, &format.DamageError{File: format.ManifestName, Offset: 0, Err: format.ErrMissing}
	}
	if err := format.CheckBlock(block); err != nil {
		return nil, err
	}
	m := &format.Manifest{
		Generation:  1,
		SegmentSize: block,
		Synced:      journal.Position(block + format.HeaderSize),
		Shards:      make(map[journal.Shard]*format.ShardManifest),
		Version:     format.ManifestVersion,
	}
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return m, install(fsys, format.ManifestName, b)
}

// logEnd is where a log ends: behind the last batch that can be read, if nothing
// shows that there was one behind it. Bytes that are no batch may be of five kinds:
//
//	clean stop   │ batch │ stop │ old bytes of the file
//	torn batch   │ batch │ half of a batch, or a mixture of it with old bytes
//	damage       │ batch │ what was a batch │ batch │ …
//	damage       │ batch │ what was a batch │ old bytes, and the manifest's Synced is here ▲
//	next file    │ batch │ seal │           the next segment has no batch at its beginning
//
// The evidence, in the order in which it is looked for:
//
//   - A batch behind the bytes (findBatchAfter). A batch is written only when the one
//     before it has been synced, so they were one: damage.
//   - Manifest.Synced, or the synced position in the header of a later batch, beyond
//     the bytes: damage.
//   - A seal says that the log goes on in the next segment. If that one is missing, or
//     has a batch, but not at its beginning: damage.
//   - Otherwise it is the end. A batch that a crash has torn was never reported as
//     durable, and is cut off. Old bytes have another seed and never pass for a batch.
//
// What cannot be told apart: damage to the very last batches, those that were synced
// after the manifest was last written (at most about a second) and have nothing behind
// them, looks like a torn batch. A stop, which Close appends, and the manifest that it
// writes leave no such doubt after a clean stop.
type logEnd struct {
	seg    *segment // the last with a batch in it; nil if there is none yet
	off    uint64   // behind its last batch
	last   uint64   // where that batch begins; off if there is none
	number uint64   // of the next record
	sealed bool     // seg takes no more
}

// openSegments opens every segment that is needed and finds the end of the log.
func (w *WAL) openSegments(m *format.Manifest, files listing) (logEnd, error) {
	from, blocks := m.Needs()
	for _, n := range files.segments {
		if n < from && !blocks[n] {
			continue
		}
		seg, err := openSegment(w.fs, n, m.SegmentSize)
		if errors.Is(err, errRecycled) {
			continue // if it is needed, it will be missed below
		}
		if err != nil {
			return logEnd{}, err
		}
		w.segs[n] = seg
	}
	for b := range blocks {
		if w.segs[b] == nil {
			return logEnd{}, &format.DamageError{File: segmentName(b), Offset: 0, Err: format.ErrMissing}
		}
	}
	end, err := findEnd(w.segs, from)
	if err == nil {
		err = w.checkNext(m, end, from)
	}
	if err != nil {
		return logEnd{}, err
	}
	if at := m.Synced; end.before(at, w.block, from) {
		n := m.Block(at)
		return logEnd{}, &format.DamageError{File: segmentName(n), Offset: uint64(at) - n*w.block, Err: format.ErrShort}
	}
	return end, nil
}

// checkNext refuses a store whose log goes on in a segment that is lost. A segment
// is sealed only when the one behind it is there, name and all, and that one is
// never given up before it has a batch. So if it is not there, nobody knows how
// much was in it. The first segment, likewise, is there before the first claim
// and before any other.
func (w *WAL) checkNext(m *format.Manifest, end logEnd, from uint64) error {
	next := from
	switch {
	case end.seg == nil && len(m.Shards) == 0 && len(w.segs) == 0:
		return nil // new
	case end.seg != nil && (!end.sealed || m.Version == 1):
		return nil // version 1 did not promise it
	case end.seg != nil:
		next = end.seg.number + 1
	}
	if w.segs[next] == nil {
		return &format.DamageError{File: segmentName(next), Offset: 0, Err: format.ErrMissNext}
	}
	return nil
}

// before reports whether the log ends before at.
func (e logEnd) before(at journal.Position, block, from uint64) bool {
	if e.seg == nil {
		return journal.Position(from*block+format.HeaderSize) < at
	}
	return e.seg.position(e.off) < at
}

// findEnd finds the end of the log among the segments from a number on. Only the
// segment that holds it is read, and the one behind if that must be looked at
// for the remains of a damaged batch.
func findEnd(segs map[uint64]*segment, from uint64) (logEnd, error) {
	n := from
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(segs))) {
		if number <= from {
			break
		}
		if ok, err := segs[number].begins(); err != nil {
			return logEnd{}, err
		} else if ok {
			n = number
			break
		}
	}
	for missing := from; missing < n; missing++ {
		if segs[missing] == nil {
			return logEnd{}, &format.DamageError{File: segmentName(missing), Offset: 0, Err: format.ErrMissing}
		}
	}
	if segs[n] == nil {
		return logEnd{number: 1}, nil // new: the first segment was not made yet
	}
	end, err := segs[n].end()
	if err != nil {
		return logEnd{}, err
	}
	if next := segs[n+1]; end.sealed && next != nil {
		if _, _, found, err := next.findBatchAfter(format.HeaderSize + format.Alignment); err != nil || found {
			return logEnd{}, errors.Join(err, next.damage(format.HeaderSize, format.ErrNoBatch))
		}
	}
	return end, nil
}

// begins reports whether the segment starts with a whole batch.
func (s *segment) begins() (bool, error) {
	sc := newScanner(s, s.head.Capacity, nil)
	sc.step = firstRead // one batch is all that is wanted, and most segments asked have none
	_, _, err := sc.next()
	if errors.Is(err, journal.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// end reads the segment up to its last whole batch. Behind that there may be
// the torn remains of a batch, but no other batch.
func (s *segment) end() (logEnd, error) {
	e := logEnd{seg: s, off: format.HeaderSize, last: format.HeaderSize, number: 1}
	sc := newScanner(s, s.head.Capacity, nil)
	for !e.sealed {
		off := sc.off
		head, _, err := sc.next()
		switch {
		case errors.Is(err, journal.ErrCorrupt):
			if _, _, found, findErr := s.findBatchAfter(off + format.Alignment); findErr != nil || found {
				return logEnd{}, errors.Join(findErr, err)
			}
			return e, nil
		case err != nil:
			return logEnd{}, err
		case off > format.HeaderSize && head.First != e.number:
			return logEnd{}, s.damage(off, format.ErrNumber)
		}
		e.sealed, e.number, e.off, e.last = head.Kind == format.KindSeal, head.First+uint64(head.Count), sc.off, off
	}
	return e, nil
}
