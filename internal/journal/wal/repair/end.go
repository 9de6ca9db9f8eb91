// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"errors"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// lostBatch is the size of a batch that says only that records are lost.
const lostBatch = format.BatchHeader + format.FrameHeader

// markEnd says at the end of the log that what came behind it is lost: how many records
// there were is not known. Without that a replay would not know of the loss, and what it
// counts would go on where the log ends, with numbers that were given before.
func (r *repairer) markEnd() error {
	if r.last >= 0 {
		s := r.segments[r.last]
		if !s.sealed && s.seg.FreeAfter(s.end) >= lostBatch {
			return markLost(s.seg, s.end, s.next)
		}
		if !s.sealed {
			if err := seal(s.seg, s.end, s.next); err != nil {
				return err
			}
			s.sealed = true
		}
	}
	number, missing := r.next()
	for _, s := range r.segments {
		if s.number == number && s.seg != nil {
			return markLost(s.seg, format.HeaderSize, r.nextRecord())
		}
	}
	if !missing {
		return nil // a store without segments
	}
	seg, err := r.makeSegment(number, min(r.manifest.SegmentSize, store.FirstCapacity))
	if err != nil {
		return err
	}
	return errors.Join(markLost(seg, format.HeaderSize, r.nextRecord()), seg.File.Close())
}

// markLost writes a tombstone behind the last batch of the log. It represents no number,
// as it is not known which there were.
func markLost(seg *store.Segment, off, number uint64) error {
	p := &patch{seg: seg, off: off, number: number, buf: make([]byte, format.BatchHeader)}
	if err := p.fill(lostBatch, number); err != nil {
		return err
	}
	return p.write(number)
}
