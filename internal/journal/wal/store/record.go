// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
)

// FirstRead is how much is read before the length of a record is known. Most
// records fit, and cost one call.
const FirstRead = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([FirstRead]byte) }}

// Read appends the payload of the frame at off to dst. Nothing behind limit is
// read.
func (s *Segment) Read(off, limit uint64, dst []byte) ([]byte, error) {
	if off < format.HeaderSize+format.BatchHeader || off+format.FrameHeader > limit {
		return dst, s.Damage(off, format.ErrLength)
	}
	buf := readBuffers.Get().(*[FirstRead]byte)
	defer readBuffers.Put(buf)
	b := buf[:min(FirstRead, limit-off)]
	if _, err := s.File.ReadAt(b, int64(off)); err != nil {
		return dst, s.readError(off, err)
	}
	length := uint64(binary.LittleEndian.Uint32(b[4:]))
	if length > limit-off-format.FrameHeader {
		return dst, s.Damage(off, format.ErrLength)
	}
	if size := format.FrameSize(int(length)); size > len(b) {
		return s.readLarge(off, size, b, dst)
	}
	f, _, err := format.DecodeFrame(b, s.Seed, off)
	if err != nil {
		return dst, s.Damage(off, err)
	}
	if f.Shard == format.TombstoneShard {
		return dst, journal.ErrFreed // Repair dropped it
	}
	return append(dst, f.Payload...), nil
}

// readError returns an error of reading what should be there. A file that is too
// short was damaged.
func (s *Segment) readError(off uint64, err error) error {
	if errors.Is(err, io.EOF) {
		return s.Damage(off, err)
	}
	return err
}

// readLarge reads a frame of size bytes of which the front has been read.
func (s *Segment) readLarge(off uint64, size int, front, dst []byte) ([]byte, error) {
	n := len(dst)
	grown := slices.Grow(dst, size)
	whole := grown[n : n+size]
	copy(whole, front)
	if _, err := s.File.ReadAt(whole[len(front):], int64(off)+int64(len(front))); err != nil {
		return dst, s.readError(off, err)
	}
	f, _, err := format.DecodeFrame(whole, s.Seed, off)
	if err != nil {
		return dst, s.Damage(off, err)
	}
	if f.Shard == format.TombstoneShard {
		return dst, journal.ErrFreed
	}
	return grown[:n+copy(grown[n:n+size], f.Payload)], nil
}

// Located is a frame and its address.
type Located struct {
	format.Frame
	At journal.Position
}

// DroppedFrom reports whether it is a tombstone, which may represent records at or
// behind from.
func (l *Located) DroppedFrom(from journal.Position) bool {
	return l.Shard == format.TombstoneShard && l.At+journal.Position(format.FrameSize(len(l.Payload))) > from
}

// Records yields the records of one segment from from on, as long as they are
// wanted, and a tombstone that reaches behind from. It stops at the seal, or, in the
// last segment, at the limit. number is that of the next record; zero is not known yet.
func (s *Scanner) Records(number *uint64, from journal.Position, yield func(Located, error) bool) (wanted bool, err error) {
	for s.off < s.limit {
		off := s.off
		head, b, err := s.next()
		if err != nil {
			return false, err
		}
		if *number != 0 && head.First != *number {
			return false, s.seg.Damage(off, format.ErrNumber)
		}
		*number = head.First + uint64(head.Count)
		if head.Kind == format.KindSeal {
			break
		}
		if s.seg.Position(s.off) <= from {
			continue
		}
		for at, f := range format.Frames(b) {
			rec := Located{f, s.seg.Position(off + uint64(at))}
			if (rec.At >= from || rec.DroppedFrom(from)) && !yield(rec, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}
