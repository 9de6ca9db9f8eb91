// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
)

// LogEnd is where a log ends: behind the last batch that can be read, if nothing
// shows that there was one behind it. Bytes that are no batch may be of five kinds:
//
//	clean stop   │ batch │ stop │ old bytes of the file
//	torn batch   │ batch │ half of a batch, or a mixture of it with old bytes
//	damage       │ batch │ what was a batch │ batch │ …
//	damage       │ batch │ what was a batch │ old bytes, and the manifest's Synced is here ▲
//	next file    │ batch │ seal │           the next segment has no batch at its beginning
//
// The evidence, in the order in which it is examined:
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
// What cannot be distinguished: damage to the very last batches, those that were synced
// after the manifest was last written (at most about a second) and have nothing behind
// them, looks like a torn batch. A stop, which Close appends, and the manifest that it
// writes leave no such doubt after a clean stop.
type LogEnd struct {
	Seg    *Segment // the last with a batch in it; nil if there is none yet
	Off    uint64   // behind its last batch
	Last   uint64   // where that batch begins; off if there is none
	Number uint64   // of the next record
	Sealed bool     // seg takes no more
}

// Before reports whether the log ends before at.
func (e LogEnd) Before(at journal.Position, segmentSize, from uint64) bool {
	if e.Seg == nil {
		return journal.Position(from*segmentSize+format.HeaderSize) < at
	}
	return e.Seg.Position(e.Off) < at
}

// FindEnd finds the end of the log among the segments from a number on. Only the
// segment that holds it is read, and the one behind if that must be searched
// for the remains of a damaged batch.
func FindEnd(segs map[uint64]*Segment, from uint64) (LogEnd, error) {
	n := from
	for _, number := range slices.Backward(slices.Sorted(maps.Keys(segs))) {
		if number <= from {
			break
		}
		if ok, err := segs[number].begins(); err != nil {
			return LogEnd{}, err
		} else if ok {
			n = number
			break
		}
	}
	for missing := from; missing < n; missing++ {
		if segs[missing] == nil {
			return LogEnd{}, &format.DamageError{File: SegmentName(missing), Offset: 0, Err: format.ErrMissing}
		}
	}
	if segs[n] == nil {
		return LogEnd{Number: 1}, nil // new: the first segment was not made yet
	}
	end, err := segs[n].end()
	if err != nil {
		return LogEnd{}, err
	}
	if next := segs[n+1]; end.Sealed && next != nil {
		if _, _, found, err := next.findBatchAfter(format.HeaderSize + format.Alignment); err != nil || found {
			return LogEnd{}, errors.Join(err, next.Damage(format.HeaderSize, format.ErrNoBatch))
		}
	}
	return end, nil
}

// begins reports whether the segment starts with a whole batch.
func (s *Segment) begins() (bool, error) {
	sc := NewScanner(s, s.Head.Capacity, nil)
	sc.step = FirstRead // one batch is all that is wanted, and most segments asked have none
	_, _, err := sc.next()
	if errors.Is(err, journal.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// end reads the segment up to its last whole batch. Behind that there may be
// the torn remains of a batch, but no other batch.
func (s *Segment) end() (LogEnd, error) {
	e := LogEnd{Seg: s, Off: format.HeaderSize, Last: format.HeaderSize, Number: 1}
	sc := NewScanner(s, s.Head.Capacity, nil)
	for !e.Sealed {
		off := sc.off
		head, _, err := sc.next()
		switch {
		case errors.Is(err, journal.ErrCorrupt):
			if _, _, found, findErr := s.findBatchAfter(off + format.Alignment); findErr != nil || found {
				return LogEnd{}, errors.Join(findErr, err)
			}
			return e, nil
		case err != nil:
			return LogEnd{}, err
		case off > format.HeaderSize && head.First != e.Number:
			return LogEnd{}, s.Damage(off, format.ErrNumber)
		}
		e.Sealed, e.Number, e.Off, e.Last = head.Kind == format.KindSeal, head.First+uint64(head.Count), sc.off, off
	}
	return e, nil
}

// Secure makes sure that the end of the log, which has been read, is on the disk.
//
// The process before may have been killed between a write and its sync. Or its
// sync failed, and then syncing once more is of no use: the kernel has marked the
// pages clean without having written them, and would report success. They must be
// written again. Only one batch can be affected, the last, since each is written
// only when the one before it has been synced; and the header, whose capacity may
// have been changed just then.
func (e LogEnd) Secure() error {
	if e.Last < e.Off {
		sc := NewScanner(e.Seg, e.Off, nil)
		sc.off, sc.base, sc.step = e.Last, e.Last, FirstRead
		_, b, err := sc.next()
		if err != nil {
			return err
		}
		if _, err := e.Seg.File.WriteAt(b, int64(e.Last)); err != nil {
			return err
		}
	}
	return e.Seg.writeHead()
}
