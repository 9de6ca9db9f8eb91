// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/triagemq/triagemq/internal/journal"
)

// firstRead is how much is read before the length of a record is known. Most
// records fit, and cost one call.
const firstRead = 4 << 10

var readBuffers = sync.Pool{New: func() any { return new([firstRead]byte) }}

// Read implements journal.Journal. What is not yet safe is read from memory.
func (w *WAL) Read(ctx context.Context, reads []journal.Read) {
	if ctx.Done() == nil {
		w.readAll(reads)
		return
	}
	own := slices.Clone(reads) // for work that goes on after ctx has ended
	done, err := await(ctx, func() ([]journal.Read, error) {
		w.readAll(own)
		return own, nil
	})
	copy(reads, done)
	if err != nil {
		for i := range reads {
			reads[i].Buf, reads[i].Err = nil, err
		}
	}
}

func (w *WAL) readAll(reads []journal.Read) {
	for i := range reads {
		reads[i].Buf, reads[i].Err = w.read(reads[i].At, reads[i].Buf)
	}
}

// read appends the record at a position to dst.
func (w *WAL) read(at journal.Position, dst []byte) ([]byte, error) {
	number, off := uint64(at)/w.block, uint64(at)%w.block
	w.mu.Lock()
	seg := w.segs[number]
	if seg == nil {
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return dst, journal.ErrClosed
		}
		return dst, journal.ErrFreed
	}
	if at >= w.log.synced {
		dst, err := w.readPending(seg, off, dst)
		w.mu.Unlock()
		return dst, err
	}
	limit := seg.head.Capacity
	w.mu.Unlock()

	out, err := seg.read(off, limit, dst)
	if err != nil && seg.gone.Load() {
		return dst, journal.ErrFreed // the file was freed, and perhaps written over, meanwhile
	}
	return out, err
}

// readPending copies a record that is still in memory; mu is held.
func (w *WAL) readPending(seg *segment, off uint64, dst []byte) ([]byte, error) {
	if b := w.log.writing; b != nil && b.holds(seg, off) {
		return b.read(off, dst)
	}
	for _, b := range w.log.pending {
		if b.holds(seg, off) {
			return b.read(off, dst)
		}
	}
	return dst, journal.ErrFreed // there never was one
}

func (b *batch) holds(seg *segment, off uint64) bool {
	return b.seg == seg && off >= b.off+format.BatchHeader && off < b.end()
}

func (b *batch) read(off uint64, dst []byte) ([]byte, error) {
	f := b.buf[off-b.off:]
	if len(f) >= format.FrameHeader {
		if n := uint64(le.Uint32(f[4:])); n <= uint64(len(f)-format.FrameHeader) {
			return append(dst, f[format.FrameHeader:format.FrameHeader+n]...), nil
		}
	}
	return dst, b.seg.damage(off, format.ErrLength)
}

// read appends the payload of the frame at off to dst. Nothing behind limit is
// read.
func (s *segment) read(off, limit uint64, dst []byte) ([]byte, error) {
	if off < format.HeaderSize+format.BatchHeader || off+format.FrameHeader > limit {
		return dst, s.damage(off, format.ErrLength)
	}
	buf := readBuffers.Get().(*[firstRead]byte)
	defer readBuffers.Put(buf)
	b := buf[:min(firstRead, limit-off)]
	if _, err := s.file.ReadAt(b, int64(off)); err != nil {
		return dst, s.readError(off, err)
	}
	length := uint64(le.Uint32(b[4:]))
	if length > limit-off-format.FrameHeader {
		return dst, s.damage(off, format.ErrLength)
	}
	if size := format.FrameSize(int(length)); size > len(b) {
		return s.readLarge(off, size, b, dst)
	}
	f, _, err := format.DecodeFrame(b, s.seed, off)
	if err != nil {
		return dst, s.damage(off, err)
	}
	if f.Shard == format.TombstoneShard {
		return dst, journal.ErrFreed // Repair dropped it
	}
	return append(dst, f.Payload...), nil
}

// readError returns an error of reading what should be there. A file that is too
// short was damaged.
func (s *segment) readError(off uint64, err error) error {
	if errors.Is(err, io.EOF) {
		return s.damage(off, err)
	}
	return err
}

// readLarge reads a frame of size bytes of which the front has been read.
func (s *segment) readLarge(off uint64, size int, front, dst []byte) ([]byte, error) {
	n := len(dst)
	grown := slices.Grow(dst, size)
	whole := grown[n : n+size]
	copy(whole, front)
	if _, err := s.file.ReadAt(whole[len(front):], int64(off)+int64(len(front))); err != nil {
		return dst, s.readError(off, err)
	}
	f, _, err := format.DecodeFrame(whole, s.seed, off)
	if err != nil {
		return dst, s.damage(off, err)
	}
	if f.Shard == format.TombstoneShard {
		return dst, journal.ErrFreed
	}
	return grown[:n+copy(grown[n:n+size], f.Payload)], nil
}

// located is a frame and its address.
type located struct {
	format.Frame
	at journal.Position
}

// records yields all records between from and end, which is behind a batch, in
// order. The payload is valid until the next one. Everything read is checked,
// and that nothing is missing in between.
func (w *WAL) records(from, end journal.Position) iter.Seq2[located, error] {
	return func(yield func(located, error) bool) {
		var buf []byte
		number, last := uint64(0), uint64(end)/w.block
		for n := uint64(from) / w.block; n <= last; n++ {
			w.mu.Lock()
			seg := w.segs[n]
			var limit uint64
			if seg != nil {
				limit = seg.head.Capacity
			}
			w.mu.Unlock()
			if seg == nil {
				yield(located{}, journal.ErrFreed)
				return
			}
			if n == last {
				limit = uint64(end) % w.block
			}
			sc := newScanner(seg, limit, buf)
			ok, err := sc.records(&number, from, yield)
			if err != nil {
				yield(located{}, w.goneOr(seg, err))
				return
			}
			if !ok {
				return
			}
			buf = sc.buf
		}
	}
}

// records yields the records of one segment from from on, as long as they are
// wanted. It stops at the seal, or, in the last segment, at the limit. number is
// that of the next record; zero is not known yet.
func (s *scanner) records(number *uint64, from journal.Position, yield func(located, error) bool) (wanted bool, err error) {
	for s.off < s.limit {
		off := s.off
		head, b, err := s.next()
		if err != nil {
			return false, err
		}
		if *number != 0 && head.First != *number {
			return false, s.seg.damage(off, format.ErrNumber)
		}
		*number = head.First + uint64(head.Count)
		if head.Kind == format.KindSeal {
			break
		}
		if s.seg.position(s.off) <= from {
			continue
		}
		for at, f := range format.Frames(b) {
			rec := located{f, s.seg.position(off + uint64(at))}
			if rec.at >= from && !yield(rec, nil) {
				return false, nil
			}
		}
	}
	return true, nil
}

func (w *WAL) goneOr(seg *segment, err error) error {
	if seg.gone.Load() {
		return journal.ErrFreed
	}
	return err
}
