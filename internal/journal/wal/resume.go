// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// tidy turns the files that nobody needs into spares, and removes the rest of
// them.
func (w *WAL) tidy(files listing) error {
	var useless []*spare
	keep := func(name string) error {
		file, err := w.fs.Open(name)
		if err != nil {
			return fmt.Errorf("open spare: %w", err)
		}
		size, err := file.Size()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		p := &spare{name, file, uint64(size)}
		if !w.keepable(p.size) {
			useless = append(useless, p)
			return nil
		}
		p.name = spareName(w.spareID.Add(1))
		if err := w.fs.Rename(name, p.name); err != nil {
			return errors.Join(err, file.Close())
		}
		p.file = named(file, p.name)
		w.stock.spares = append(w.stock.spares, p)
		return nil
	}
	for _, name := range files.spares {
		id, err := strconv.ParseUint(strings.TrimSuffix(name, spareSuffix), 10, 64)
		if err == nil {
			w.spareID.Store(max(w.spareID.Load(), id))
		}
	}
	for _, seg := range w.segs {
		w.stock.newest = max(w.stock.newest, seg.head.capacity)
	}
	for _, name := range files.spares {
		if err := keep(name); err != nil {
			return err
		}
	}
	for _, n := range files.segments {
		if w.segs[n] == nil {
			if err := keep(segmentName(n)); err != nil {
				return err
			}
		}
	}
	return w.discard(useless)
}

// resume makes the end of the log the place to append to.
func (w *WAL) resume(end ending) error {
	// Segments behind the last are of a former life of ours. They may hold the
	// remains of a torn batch, so they start afresh, with a new salt.
	for _, n := range slices.Sorted(maps.Keys(w.segs)) {
		if n > end.seg.number {
			seg := w.segs[n]
			delete(w.segs, n)
			if err := w.retire(seg); err != nil {
				return err
			}
		}
	}
	w.log.active, w.log.off, w.log.number = end.seg, end.off, end.number
	w.log.synced = end.seg.position(end.off)
	w.status.Durable = w.log.synced - 1
	w.segs[end.seg.number] = end.seg

	if err := end.secure(); err != nil {
		return err
	}
	if err := w.fs.SyncDir("."); err != nil {
		return err
	}
	if !end.sealed {
		return nil
	}
	if err := w.supply(0); err != nil {
		return err
	}
	next := w.stock.first()
	w.stock.ready = w.stock.ready[1:]
	w.activate(next)
	return nil
}

// secure makes sure that the end of the log, which has been read, is on the disk.
//
// The process before may have been killed between a write and its sync. Or its
// sync failed, and then syncing once more is of no use: the kernel has marked the
// pages clean without having written them, and would report success. They must be
// written again. Only one batch can be affected, the last, since each is written
// only when the one before it has been synced; and the header, whose capacity may
// have been changed just then.
func (e ending) secure() error {
	if e.last < e.off {
		sc := newScanner(e.seg, e.off, nil)
		sc.off, sc.base = e.last, e.last
		_, b, err := sc.next()
		if err != nil {
			return err
		}
		if _, err := e.seg.file.WriteAt(b, int64(e.last)); err != nil {
			return err
		}
	}
	return e.seg.writeHead()
}
