// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"iter"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

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
	number, off := uint64(at)/w.segmentSize, uint64(at)%w.segmentSize
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
	limit := seg.Head.Capacity
	w.mu.Unlock()

	out, err := seg.Read(off, limit, dst)
	if err != nil && seg.Gone.Load() {
		return dst, journal.ErrFreed // the file was freed, and perhaps written over, meanwhile
	}
	return out, err
}

// readPending copies a record that is still in memory; mu is held.
func (w *WAL) readPending(seg *store.Segment, off uint64, dst []byte) ([]byte, error) {
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

func (b *batch) holds(seg *store.Segment, off uint64) bool {
	return b.seg == seg && off >= b.off+format.BatchHeader && off < b.end()
}

func (b *batch) read(off uint64, dst []byte) ([]byte, error) {
	f := b.buf[off-b.off:]
	if len(f) >= format.FrameHeader {
		if n := uint64(le.Uint32(f[4:])); n <= uint64(len(f)-format.FrameHeader) {
			return append(dst, f[format.FrameHeader:format.FrameHeader+n]...), nil
		}
	}
	return dst, b.seg.Damage(off, format.ErrLength)
}

// records yields all records between from and end, which is behind a batch, in
// order. The payload is valid until the next one. Everything read is checked,
// and that nothing is missing in between.
func (w *WAL) records(from, end journal.Position) iter.Seq2[store.Located, error] {
	return func(yield func(store.Located, error) bool) {
		var buf []byte
		number, last := uint64(0), uint64(end)/w.segmentSize
		for n := uint64(from) / w.segmentSize; n <= last; n++ {
			w.mu.Lock()
			seg := w.segs[n]
			var limit uint64
			if seg != nil {
				limit = seg.Head.Capacity
			}
			w.mu.Unlock()
			if seg == nil {
				yield(store.Located{}, journal.ErrFreed)
				return
			}
			if n == last {
				limit = uint64(end) % w.segmentSize
			}
			sc := store.NewScanner(seg, limit, buf)
			ok, err := sc.Records(&number, from, yield)
			if err != nil {
				yield(store.Located{}, w.goneOr(seg, err))
				return
			}
			if !ok {
				return
			}
			buf = sc.Buf
		}
	}
}

func (w *WAL) goneOr(seg *store.Segment, err error) error {
	if seg.Gone.Load() {
		return journal.ErrFreed
	}
	return err
}
