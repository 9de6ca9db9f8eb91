// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
)

// ReadStep is how much of a segment is read at a time: large enough that the
// call does not count, small enough to stay in the cache of a core.
const ReadStep = 1 << 20

// Scanner reads the batches of a segment in order and checks every byte.
type Scanner struct {
	seg   *Segment
	off   uint64 // of the batch that next returns
	limit uint64 // in the segment: nothing is read behind it
	step  int    // how much is read at a time, at least

	Buf  []byte // bytes of the segment from base on
	base uint64
}

// NewScanner returns a scanner of the batches up to limit, which may use buf.
func NewScanner(seg *Segment, limit uint64, buf []byte) *Scanner {
	return &Scanner{seg: seg, off: format.HeaderSize, limit: limit, step: ReadStep, Buf: buf[:0], base: format.HeaderSize}
}

// next returns the batch at off and moves behind it. The body is valid until
// the next call. A DamageError leaves off where it was; whether it is the end,
// a torn tail or damage is for the caller to find out.
func (s *Scanner) next() (format.BatchHead, []byte, error) {
	if s.limit < s.off+format.BatchHeader {
		return format.BatchHead{}, nil, s.seg.Damage(s.off, format.ErrNoBatch)
	}
	b, err := s.fill(format.BatchHeader)
	if err != nil {
		return format.BatchHead{}, nil, err
	}
	head, err := format.DecodeBatchHead(b, s.seg.Seed, s.off, s.limit)
	if err != nil {
		return format.BatchHead{}, nil, s.seg.Damage(s.off, err)
	}
	if b, err = s.fill(int(head.Length)); err != nil {
		return format.BatchHead{}, nil, err
	}
	if at, err := format.CheckBatch(head, b, s.seg.Seed, s.off); err != nil {
		return format.BatchHead{}, nil, s.seg.Damage(s.off+uint64(at), err)
	}
	s.off += uint64(head.Length)
	return head, b, nil
}

// fill returns the n bytes at off, which lie within the limit.
func (s *Scanner) fill(n int) ([]byte, error) {
	have := s.Buf[min(uint64(len(s.Buf)), s.off-s.base):]
	if len(have) < n {
		want := int(min(uint64(max(n, s.step)), s.limit-s.off))
		kept := copy(s.Buf[:cap(s.Buf)], have)
		s.Buf = slices.Grow(s.Buf[:kept], want-kept)[:want]
		s.base = s.off
		if _, err := s.seg.File.ReadAt(s.Buf[kept:], int64(s.off)+int64(kept)); err != nil {
			if errors.Is(err, io.EOF) {
				err = s.seg.Damage(s.off, err)
			}
			return nil, err
		}
		have = s.Buf
	}
	return have[:n], nil
}

// findBatchAfter looks for the header of a batch at or behind off. One that is found
// behind bytes that are no batch proves that those were one: it says itself that
// everything before it had been synced. Torn writes leave no such header,
// because a batch is written only when the one before it is synced.
func (s *Segment) findBatchAfter(off uint64) (format.BatchHead, uint64, bool, error) {
	buf := make([]byte, min(ReadStep, s.Head.Capacity))
	for off+format.BatchHeader <= s.Head.Capacity {
		b := buf[:min(uint64(len(buf)), s.Head.Capacity-off)]
		if _, err := s.File.ReadAt(b, int64(off)); err != nil {
			return format.BatchHead{}, 0, false, err
		}
		last := len(b) - format.BatchHeader
		for at := 0; at <= last; at += format.Alignment {
			if binary.LittleEndian.Uint32(b[at+4:]) != format.BatchMagic {
				continue
			}
			here := off + uint64(at)
			head, err := format.DecodeBatchHead(b[at:], s.Seed, here, s.Head.Capacity)
			if err == nil {
				return head, here, true, nil
			}
		}
		off += uint64(last/format.Alignment+1) * format.Alignment
	}
	return format.BatchHead{}, 0, false, nil
}

// Span is a stretch of a segment: a batch, or bytes that should be one.
type Span struct {
	Off, End uint64
	Head     format.BatchHead
	Body     []byte // of a batch; valid until the next span
	Err      error  // why this is no batch
	Rest     bool   // nothing behind it is a batch: the log, or the damage, ends here
}

// Spans yields what is in the segment, up to its seal. Behind damage it goes on
// with the next batch that it can find. The error is that of the disk.
func (s *Segment) Spans() iter.Seq2[Span, error] {
	return func(yield func(Span, error) bool) {
		sc := NewScanner(s, s.Head.Capacity, nil)
		for {
			off := sc.off
			head, body, err := sc.next()
			switch {
			case err == nil:
				if !yield(Span{Off: off, End: sc.off, Head: head, Body: body}, nil) || head.Kind == format.KindSeal {
					return
				}
			case !errors.Is(err, journal.ErrCorrupt):
				yield(Span{}, err)
				return
			default:
				_, at, found, findErr := s.findBatchAfter(off + format.Alignment)
				if findErr != nil {
					yield(Span{}, findErr)
					return
				}
				bad := Span{Off: off, End: at, Err: err}
				if !found {
					bad.End, bad.Rest = s.Head.Capacity, true
				}
				if !yield(bad, nil) || bad.Rest {
					return
				}
				sc.off = at
			}
		}
	}
}
