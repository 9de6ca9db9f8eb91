// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"maps"
	"math/rand/v2"
	"slices"
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
		// The reserve is kept until its owners have spoken, but for files that a
		// crash has caught in the making.
		reserved := strings.HasSuffix(name, reserveSuffix) && p.size >= w.least()
		if !w.keepable(p.size) && !reserved {
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
		if strings.HasSuffix(name, segmentSuffix) {
			p.name = spareName(w.spareID.Add(1))
			err := w.fs.Rename(name, p.name)
			if passes(err) { // the directory has no space for the name
				p.name = name
				useless = append(useless, p)
				return nil
			}
			if err != nil {
				return errors.Join(err, file.Close())
			}
		}
		p.file = named(file, p.name)
		w.putSpare(p)
		return nil
	}
	for _, name := range files.spares {
		w.spareID.Store(max(w.spareID.Load(), spareID(name)))
	}
	for _, seg := range w.segs {
		w.pool.newest = max(w.pool.newest, seg.head.Capacity)
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
func (w *WAL) resume(end logEnd) error {
	if err := w.reclaim(end.seg.number); err != nil {
		return err
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
	w.log.sealed = end.sealed
	if !end.sealed {
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
// missing, because that is how a lost one is told.
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
		again, err := seg.reformat()
		if err != nil {
			return err
		}
		w.pool.ready = append(w.pool.ready, again)
		w.pool.held += again.freeAfter(format.HeaderSize)
	}
	return nil
}

// reformat makes the segment empty, in place.
func (s *segment) reformat() (*segment, error) {
	size, err := s.file.Size()
	if err != nil {
		return nil, err
	}
	fresh := &segment{number: s.number, name: s.name, file: s.file}
	fresh.head = format.SegmentHead{Number: s.number, Block: s.head.Block, Capacity: min(uint64(size), s.head.Block), Salt: rand.Uint64()}
	fresh.seed = fresh.head.Seed()
	return fresh, fresh.writeHead()
}

// secure makes sure that the end of the log, which has been read, is on the disk.
//
// The process before may have been killed between a write and its sync. Or its
// sync failed, and then syncing once more is of no use: the kernel has marked the
// pages clean without having written them, and would report success. They must be
// written again. Only one batch can be affected, the last, since each is written
// only when the one before it has been synced; and the header, whose capacity may
// have been changed just then.
func (e logEnd) secure() error {
	if e.last < e.off {
		sc := newScanner(e.seg, e.off, nil)
		sc.off, sc.base, sc.step = e.last, e.last, firstRead
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
