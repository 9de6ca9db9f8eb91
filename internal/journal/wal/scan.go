// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"io"
	"slices"
)

// readStep is how much of a segment is read at a time: large enough that the
// call does not count, small enough to stay in the cache of a core.
const readStep = 1 << 20

// scanner reads the batches of a segment in order and checks every byte.
type scanner struct {
	seg   *segment
	off   uint64 // of the batch that next returns
	limit uint64 // in the segment: nothing is read behind it
	step  int    // how much is read at a time, at least

	buf  []byte // bytes of the segment from base on
	base uint64
}

func newScanner(seg *segment, limit uint64, buf []byte) *scanner {
	return &scanner{seg: seg, off: format.HeaderSize, limit: limit, step: readStep, buf: buf[:0], base: format.HeaderSize}
}

// next returns the batch at off and moves behind it. The body is valid until
// the next call. A DamageError leaves off where it was; whether it is the end,
// a torn tail or damage is for the caller to find out.
func (s *scanner) next() (format.BatchHead, []byte, error) {
	if s.limit < s.off+format.BatchHeader {
		return format.BatchHead{}, nil, s.seg.damage(s.off, format.ErrNoBatch)
	}
	b, err := s.fill(format.BatchHeader)
	if err != nil {
		return format.BatchHead{}, nil, err
	}
	head, err := format.DecodeBatchHead(b, s.seg.seed, s.off, s.limit)
	if err != nil {
		return format.BatchHead{}, nil, s.seg.damage(s.off, err)
	}
	if b, err = s.fill(int(head.Length)); err != nil {
		return format.BatchHead{}, nil, err
	}
	if at, err := format.CheckBatch(head, b, s.seg.seed, s.off); err != nil {
		return format.BatchHead{}, nil, s.seg.damage(s.off+uint64(at), err)
	}
	s.off += uint64(head.Length)
	return head, b, nil
}

// fill returns the n bytes at off, which lie within the limit.
func (s *scanner) fill(n int) ([]byte, error) {
	have := s.buf[min(uint64(len(s.buf)), s.off-s.base):]
	if len(have) < n {
		want := int(min(uint64(max(n, s.step)), s.limit-s.off))
		kept := copy(s.buf[:cap(s.buf)], have)
		s.buf = slices.Grow(s.buf[:kept], want-kept)[:want]
		s.base = s.off
		if _, err := s.seg.file.ReadAt(s.buf[kept:], int64(s.off)+int64(kept)); err != nil {
			if errors.Is(err, io.EOF) {
				err = s.seg.damage(s.off, err)
			}
			return nil, err
		}
		have = s.buf
	}
	return have[:n], nil
}

// findBatchAfter looks for the header of a batch at or behind off. One that is found
// behind bytes that are no batch proves that those were one: it says itself that
// everything before it had been synced. Torn writes leave no such header,
// because a batch is written only when the one before it is synced.
func (s *segment) findBatchAfter(off uint64) (format.BatchHead, uint64, bool, error) {
	buf := make([]byte, min(readStep, s.head.Capacity))
	for off+format.BatchHeader <= s.head.Capacity {
		b := buf[:min(uint64(len(buf)), s.head.Capacity-off)]
		if _, err := s.file.ReadAt(b, int64(off)); err != nil {
			return format.BatchHead{}, 0, false, err
		}
		last := len(b) - format.BatchHeader
		for at := 0; at <= last; at += format.Alignment {
			if le.Uint32(b[at+4:]) != format.BatchMagic {
				continue
			}
			here := off + uint64(at)
			head, err := format.DecodeBatchHead(b[at:], s.seed, here, s.head.Capacity)
			if err == nil {
				return head, here, true, nil
			}
		}
		off += uint64(last/format.Alignment+1) * format.Alignment
	}
	return format.BatchHead{}, 0, false, nil
}
