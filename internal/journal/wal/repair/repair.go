// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Mode says what Repair may do. The zero value is nothing.
type Mode int

// DropDamaged lets Repair give up what is damaged, so that the rest can be used.
const DropDamaged Mode = 1

// Dropped is something that Repair gave up.
type Dropped struct {
	File   string
	Offset uint64
	// First and Records say which records are lost, by their number; none if
	// only bookkeeping was. Their shards are not known any more.
	First   uint64
	Records uint64
	Reason  error
}

// Restored is bookkeeping that was lost or damaged, and that Repair has put right
// from what it found elsewhere. Nothing is lost.
type Restored struct {
	File   string
	Reason error
}

// Result is what Repair did.
type Result struct {
	Restored []Restored
	Dropped  []Dropped
}

// Repair makes a damaged store usable again by giving up what is damaged, record
// by record where it can: a record that is whole is kept, wherever it lies. A
// manifest that is lost is made again from the log, which holds a copy of it. It
// reports what it did, nothing if the store was sound. It may be run again after
// a crash in the middle of it.
func Repair(fsys vfs.FS, mode Mode) (done Result, err error) {
	if mode != DropDamaged {
		return Result{}, errors.New("repair: drops data; pass DropDamaged to allow it")
	}
	st, err := inspect(fsys)
	if st != nil {
		defer func() { err = errors.Join(err, st.close()) }()
	}
	r := &repairer{offline: st}
	if errors.Is(err, journal.ErrCorrupt) {
		err = r.rebuildManifest(err)
	}
	if err != nil {
		return r.done, fmt.Errorf("repair: %w", err)
	}
	for _, note := range st.notes {
		r.restored(note)
	}
	if err := r.run(); err != nil {
		return r.done, fmt.Errorf("repair: %w", err)
	}
	return r.done, nil
}

// repairer is a store being repaired.
type repairer struct {
	*offline
	done Result
}

func (r *repairer) drop(d Dropped) { r.done.Dropped = append(r.done.Dropped, d) }

// restored notes that what reason says has been put right.
func (r *repairer) restored(reason error) {
	d, ok := errors.AsType[*format.DamageError](reason)
	if !ok {
		d = &format.DamageError{File: format.ManifestName, Offset: 0, Err: reason}
	}
	r.done.Restored = append(r.done.Restored, Restored{d.File, d.Err})
}

func (r *repairer) run() error {
	if err := r.restoreHeads(); err != nil {
		return err
	}
	if err := r.scanAll(); err != nil {
		return err
	}
	r.forgetSegments()
	from, _ := r.manifest.Needs()
	number := uint64(0) // of the next record; zero is not known
	var err error
	for i, s := range r.segments {
		if i > 0 && r.segments[i-1].number+1 != s.number {
			number = 0
		}
		if s.seg == nil {
			if i > r.last || s.number < from {
				continue // behind the end, or forgotten
			}
			if err := r.replace(s, number, r.nextKnown(i)); err != nil {
				return err
			}
			number = r.nextKnown(i)
			continue
		}
		s.ends = i < r.last || s.number < from
		if number, err = r.repairSegment(s, number, r.nextKnown(i)); err != nil {
			return err
		}
	}
	if err := r.clearEnd(); err != nil {
		return err
	}
	return r.settle()
}

// clearEnd removes what cannot be read behind the last batch, and makes the
// segment in which the log goes on if that is lost.
func (r *repairer) clearEnd() error {
	number, missing := r.next()
	reason := format.ErrMissNext
	for i := r.last + 1; i < len(r.segments); i++ {
		s := r.segments[i]
		if s.seg != nil || errors.Is(s.err, format.ErrMissing) {
			continue
		}
		if missing && s.number == number {
			reason = s.err
		} else {
			r.drop(Dropped{File: store.SegmentName(s.number), Reason: s.err})
		}
		if err := r.fs.Remove(store.SegmentName(s.number)); err != nil {
			return err
		}
	}
	if !missing {
		return nil
	}
	s, err := r.makeSegment(number, min(r.manifest.SegmentSize, store.FirstCapacity))
	if err != nil {
		return err
	}
	if r.last < 0 || r.manifest.Version > 1 || reason != format.ErrMissNext { // version 1 did not promise it
		r.drop(Dropped{File: s.Name, Reason: reason})
		if err := markLost(s, format.HeaderSize, r.nextRecord()); err != nil {
			return errors.Join(err, s.File.Close())
		}
	}
	return s.File.Close()
}

// nextRecord returns the number of the record behind the last batch.
func (r *repairer) nextRecord() uint64 {
	if r.last < 0 {
		return 1
	}
	return r.segments[r.last].next
}

// nextKnown returns the number with which the first segment behind i that has
// any begins; zero if there is none.
func (r *repairer) nextKnown(i int) uint64 {
	for j := i + 1; j < len(r.segments) && r.segments[j].number == r.segments[i].number+uint64(j-i); j++ {
		if r.segments[j].batches > 0 {
			return r.segments[j].first
		}
	}
	return 0
}

// restoreHeads rewrites segment headers of which one copy is whole.
func (r *repairer) restoreHeads() error {
	for _, n := range r.files.Segments {
		reason, err := store.RestoreHead(r.fs, n) // what it cannot restore is seen to later
		if reason != nil {
			r.restored(reason)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forgetSegments drops kept segments that cannot be read.
func (r *repairer) forgetSegments() {
	from, _ := r.manifest.Needs()
	for _, s := range r.segments {
		if s.number >= from || s.seg != nil {
			continue
		}
		r.drop(Dropped{File: store.SegmentName(s.number), Reason: s.err})
		for _, m := range r.manifest.Shards {
			m.Segments = slices.DeleteFunc(m.Segments, func(b uint64) bool { return b == s.number })
		}
	}
}

// settle writes a manifest that asks for no more than there is.
func (r *repairer) settle() error {
	if err := r.scanAgain(); err != nil {
		return err
	}
	from, _ := r.manifest.Needs()
	end := journal.Position(from*r.manifest.SegmentSize + format.HeaderSize)
	if r.last >= 0 {
		s := r.segments[r.last]
		end = s.seg.Position(s.end)
	}
	shorter := end < r.manifest.Synced
	if shorter {
		if err := r.markEnd(); err != nil {
			return err
		}
		r.drop(Dropped{File: store.SegmentName(r.manifest.Segment(end)), Offset: uint64(end) % r.manifest.SegmentSize,
			Reason: errors.New("the end of the log is lost")})
	}
	r.manifest.Synced = min(r.manifest.Synced, end) // the last batch may not be synced
	for _, m := range r.manifest.Shards {
		m.From = min(m.From, end)
	}
	if err := r.writeManifest(); err != nil {
		return err
	}
	if shorter { // by now it needs other segments, and has a mark at its end
		if err := r.scanAgain(); err != nil {
			return err
		}
	}
	_, err := r.report()
	return err
}

// scanAgain reads what is there now.
func (r *repairer) scanAgain() (err error) {
	for _, s := range r.segments {
		if s.seg != nil {
			if err := s.seg.File.Close(); err != nil {
				return err
			}
		}
	}
	r.segments, r.last = nil, -1
	if r.files, err = store.List(r.fs); err != nil {
		return err
	}
	return r.scanAll()
}

// writeManifest replaces both files of the manifest.
func (r *repairer) writeManifest() error {
	r.manifest.Generation++
	r.manifest.Version = format.ManifestVersion
	b, err := r.manifest.Encode()
	if err != nil {
		return err
	}
	for _, name := range store.CopyNames {
		if err := store.Install(r.fs, name, b); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	r.notes = nil
	return nil
}
