// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// tidy turns the files that are not needed into spares, and removes the rest of
// them.
func (w *WAL) tidy(files store.Listing) error {
	var useless []*store.Spare
	keep := func(name string) error {
		file, err := w.fs.Open(name)
		if err != nil {
			return fmt.Errorf("open spare: %w", err)
		}
		size, err := file.Size()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		p := &store.Spare{Name: name, File: file, Size: uint64(size)}
		// The reserve is kept until its owners have spoken, but for files that a
		// crash has caught in the making.
		reserved := strings.HasSuffix(name, store.ReserveSuffix) && p.Size >= w.least()
		if !w.keepable(p.Size) && !reserved {
			useless = append(useless, p)
			return nil
		}
		// Of a store that was copied it may have the size, but not the blocks.
		err = file.Allocate(size)
		if passes(err) {
			useless = append(useless, p)
			return nil
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		if strings.HasSuffix(name, store.SegmentSuffix) {
			p.Name = store.SpareName(w.spareID.Add(1))
			err := w.fs.Rename(name, p.Name)
			if passes(err) { // the directory has no space for the name
				p.Name = name
				useless = append(useless, p)
				return nil
			}
			if err != nil {
				return errors.Join(err, file.Close())
			}
		}
		p.File = store.Named(file, p.Name)
		w.putSpare(p)
		return nil
	}
	for _, name := range files.Spares {
		w.spareID.Store(max(w.spareID.Load(), store.SpareID(name)))
	}
	for _, seg := range w.segs {
		w.pool.newest = max(w.pool.newest, seg.Head.Capacity)
	}
	for _, name := range files.Spares {
		if err := keep(name); err != nil {
			return err
		}
	}
	for _, n := range files.Segments {
		if w.segs[n] == nil {
			if err := keep(store.SegmentName(n)); err != nil {
				return err
			}
		}
	}
	return w.discard(useless)
}

// resume makes the end of the log the place to append to.
func (w *WAL) resume(end store.LogEnd) error {
	if err := w.reclaim(end.Seg.Number); err != nil {
		return err
	}
	w.log.active, w.log.off, w.log.number = end.Seg, end.Off, end.Number
	w.log.synced = end.Seg.Position(end.Off)
	w.status.Durable = w.log.synced - 1
	w.segs[end.Seg.Number] = end.Seg

	if err := end.Secure(); err != nil {
		return err
	}
	if err := w.fs.SyncDir("."); err != nil {
		return err
	}
	w.log.sealed = end.Sealed
	if !end.Sealed {
		return nil
	}
	if w.pool.first() == nil { // in a store of version 1 only
		if err := w.ensureReady(format.BatchHeader); err != nil {
			return err
		}
	}
	w.advance()
	return nil
}

// reclaim makes ready again what was ready behind the last segment. Any of it may
// hold the remains of a torn batch, so each gets a new salt. They are not renamed,
// and not made anew: at no time may the next segment behind a sealed one be
// missing, because a missing one means that it was lost.
func (w *WAL) reclaim(last uint64) error {
	for _, n := range slices.Sorted(maps.Keys(w.segs)) {
		if n <= last {
			continue
		}
		seg := w.segs[n]
		delete(w.segs, n)
		if n != last+uint64(len(w.pool.ready))+1 {
			if err := w.recycleSegment(seg); err != nil { // there is a gap: of no use
				return err
			}
			continue
		}
		again, err := seg.Reformat()
		if err != nil {
			return err
		}
		w.pool.ready = append(w.pool.ready, again)
		w.pool.prepared += again.FreeAfter(format.HeaderSize)
	}
	return nil
}
