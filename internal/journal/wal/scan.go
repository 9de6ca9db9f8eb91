// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
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
	return &scanner{seg: seg, off: headerSize, limit: limit, step: readStep, buf: buf[:0], base: headerSize}
}

// next returns the batch at off and moves behind it. The body is valid until
// the next call. A DamageError leaves off where it was; whether it is the end,
// a torn tail or damage is for the caller to find out.
func (s *scanner) next() (batchHead, []byte, error) {
	if s.limit < s.off+batchHeader {
		return batchHead{}, nil, s.seg.damage(s.off, errNoBatch)
	}
	b, err := s.fill(batchHeader)
	if err != nil {
		return batchHead{}, nil, err
	}
	head, err := decodeBatchHead(b, s.seg.seed, s.off, s.limit)
	if err != nil {
		return batchHead{}, nil, s.seg.damage(s.off, err)
	}
	if b, err = s.fill(int(head.length)); err != nil {
		return batchHead{}, nil, err
	}
	if at, err := checkBatch(head, b, s.seg.seed, s.off); err != nil {
		return batchHead{}, nil, s.seg.damage(s.off+uint64(at), err)
	}
	s.off += uint64(head.length)
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

// checkBatch checks the frames of a batch at off whose header is right, and
// returns where in it the first fault is.
func checkBatch(head batchHead, b []byte, seed uint32, off uint64) (int, error) {
	digest, number := uint32(0), head.first
	for at := batchHeader; at < len(b); {
		f, size, err := decodeFrame(b[at:], seed, off+uint64(at))
		if err != nil {
			return at, err
		}
		if f.number != number {
			return at, errNumber
		}
		digest = crc32.Update(digest, castagnoli, b[at:at+4])
		number += f.records()
		at += size
	}
	if digest != head.digest || number != head.first+uint64(head.count) {
		return 0, errDigest
	}
	return 0, nil
}

// frames yields the frames of a checked batch, each with its place in it.
func frames(b []byte) iter.Seq2[int, frame] {
	return func(yield func(int, frame) bool) {
		for at := batchHeader; at < len(b); {
			length := int(le.Uint32(b[at+4:]))
			f := frame{
				shard:   journal.Shard(le.Uint32(b[at+8:])),
				epoch:   le.Uint32(b[at+12:]),
				number:  le.Uint64(b[at+16:]),
				payload: b[at+frameHeader : at+frameHeader+length : at+frameHeader+length],
			}
			if !yield(at, f) {
				return
			}
			at += frameSize(length)
		}
	}
}

// findBatchAfter looks for the header of a batch at or behind off. One that is found
// behind bytes that are no batch proves that those were one: it says itself that
// everything before it had been synced. Torn writes leave no such header,
// because a batch is written only when the one before it is synced.
func (s *segment) findBatchAfter(off uint64) (batchHead, uint64, bool, error) {
	buf := make([]byte, min(readStep, s.head.capacity))
	for off+batchHeader <= s.head.capacity {
		b := buf[:min(uint64(len(buf)), s.head.capacity-off)]
		if _, err := s.file.ReadAt(b, int64(off)); err != nil {
			return batchHead{}, 0, false, err
		}
		last := len(b) - batchHeader
		for at := 0; at <= last; at += alignment {
			if le.Uint32(b[at+4:]) != batchMagic {
				continue
			}
			here := off + uint64(at)
			head, err := decodeBatchHead(b[at:], s.seed, here, s.head.capacity)
			if err == nil {
				return head, here, true, nil
			}
		}
		off += uint64(last/alignment+1) * alignment
	}
	return batchHead{}, 0, false, nil
}
