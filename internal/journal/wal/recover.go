// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/notify"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Open recovers the store in the root of fsys, or makes a new one. A batch that
// a crash left unfinished is cut off: it was never reported as durable. Damage to anything
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
		segs:          make(map[uint64]*store.Segment),
	}
	w.unsynced, w.small = cmp.Or(opts.Unsynced, defaultUnsynced), opts.Small
	if err := w.recover(cmp.Or(opts.SegmentSize, defaultSegmentSize)); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: %w", err), w.release())
	}
	return w, nil
}

func (w *WAL) recover(segmentSize uint64) error {
	files, err := store.List(w.fs)
	if err != nil {
		return err
	}
	found, err := store.ReadCopies(w.fs)
	if err != nil {
		return err
	}
	m, best, err := found.Best()
	if err == nil && m == nil {
		m, err = newStore(w.fs, files, segmentSize)
	}
	if err != nil {
		return err
	}
	w.copies = store.NewCopies(w.fs)
	if m.Version > 1 { // version 1 was renamed when it was synced
		if err := w.copies.Secure(m, best); err != nil {
			return err
		}
	}
	w.segmentSize = m.SegmentSize
	w.measureDisk()
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
	if end.Seg == nil {
		from, _ := m.Needs()
		if end.Seg, err = w.firstSegment(from); err != nil {
			return err
		}
		end.Off, end.Last = format.HeaderSize, format.HeaderSize
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
		err := w.copies.Open(m, best)
		w.generation, w.marked = m.Generation, m.Synced
		if !errors.Is(err, vfs.ErrNoSpace) || !w.giveUpSpare() {
			return err
		}
	}
}

// newStore makes the manifest of a new store. It comes before any segment, so
// segments without one are the remains of a store.
func newStore(fsys vfs.FS, files store.Listing, segmentSize uint64) (*format.Manifest, error) {
	if len(files.Segments) > 0 {
		return nil, &format.DamageError{File: format.ManifestName, Offset: 0, Err: format.ErrMissing}
	}
	if err := format.CheckSegmentSize(segmentSize); err != nil {
		return nil, err
	}
	m := &format.Manifest{
		Generation:  1,
		SegmentSize: segmentSize,
		Synced:      journal.Position(segmentSize + format.HeaderSize),
		Shards:      make(map[journal.Shard]*format.ShardManifest),
		Version:     format.ManifestVersion,
	}
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	return m, store.Install(fsys, format.ManifestName, b)
}

// openSegments opens every segment that is needed and finds the end of the log.
func (w *WAL) openSegments(m *format.Manifest, files store.Listing) (store.LogEnd, error) {
	from, kept := m.Needs()
	for _, n := range files.Segments {
		if n < from && !kept[n] {
			continue
		}
		seg, err := store.OpenSegment(w.fs, n, m.SegmentSize)
		if errors.Is(err, store.ErrRecycled) {
			continue // if it is needed, it will be missed below
		}
		if err != nil {
			return store.LogEnd{}, err
		}
		w.segs[n] = seg
	}
	for b := range kept {
		if w.segs[b] == nil {
			return store.LogEnd{}, &format.DamageError{File: store.SegmentName(b), Offset: 0, Err: format.ErrMissing}
		}
	}
	end, err := store.FindEnd(w.segs, from)
	if err == nil {
		err = w.checkNext(m, end, from)
	}
	if err != nil {
		return store.LogEnd{}, err
	}
	if at := m.Synced; end.Before(at, w.segmentSize, from) {
		n := m.Segment(at)
		return store.LogEnd{}, &format.DamageError{File: store.SegmentName(n), Offset: uint64(at) - n*w.segmentSize, Err: format.ErrShort}
	}
	return end, nil
}

// checkNext refuses a store whose log goes on in a segment that is lost. A segment
// is sealed only when the one behind it is there, name and all, and that one is
// never dropped before it has a batch. So if it is missing, an unknown number of
// records is lost. The first segment, likewise, is there before the first claim
// and before any other.
func (w *WAL) checkNext(m *format.Manifest, end store.LogEnd, from uint64) error {
	next := from
	switch {
	case end.Seg == nil && len(m.Shards) == 0 && len(w.segs) == 0:
		return nil // new
	case end.Seg != nil && (!end.Sealed || m.Version == 1):
		return nil // version 1 did not promise it
	case end.Seg != nil:
		next = end.Seg.Number + 1
	}
	if w.segs[next] == nil {
		return &format.DamageError{File: store.SegmentName(next), Offset: 0, Err: format.ErrMissNext}
	}
	return nil
}
