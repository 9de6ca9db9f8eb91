// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/binary"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

var le = binary.LittleEndian

// maxBatch is the size at which a batch takes no more groups, in bytes: beyond
// it a longer write saves nothing and delays the first of its records.
const maxBatch = 4 << 20

// maxUnused is how many batches are kept to be used again: some wait for the disk when
// more comes than it takes. A store that is idle keeps one.
const maxUnused = 4

// batch is what one commit writes: a header, then frames. It is the unit that
// recovery finds whole or not at all.
type batch struct {
	seg   *store.Segment
	off   uint64 // of the header, in seg
	kind  format.Kind
	first uint64 // number of the first record
	count uint32
	last  journal.Position // of the last record; zero if there is none

	// buf is the header and the frames. Append writes it under the mutex of
	// the WAL, all but header and checksums; from the moment it is taken out
	// of pending the committer alone fills in those.
	buf []byte
}

// end returns the offset behind the batch.
func (b *batch) end() uint64 { return b.off + uint64(len(b.buf)) }

// reset makes b an empty batch at off.
func (b *batch) reset(seg *store.Segment, off uint64, k format.Kind, first uint64) {
	buf := b.buf[:0]
	if cap(buf) < format.BatchHeader {
		buf = make([]byte, 0, 64<<10)
	}
	*b = batch{seg: seg, off: off, kind: k, first: first, buf: buf[:format.BatchHeader]}
}

// finish fills in checksums and header.
func (b *batch) finish(synced journal.Position) {
	digest := uint32(0)
	for at := format.BatchHeader; at < len(b.buf); {
		size := format.FrameSize(int(le.Uint32(b.buf[at+4:])))
		format.SumFrame(b.buf[at:at+size], b.seg.Seed, b.off+uint64(at))
		digest = format.AddToDigest(digest, b.buf[at:])
		at += size
	}
	format.BatchHead{
		Kind: b.kind, Length: uint32(len(b.buf)), Count: b.count,
		Digest: digest, First: b.first, Synced: synced,
	}.Encode(b.buf, b.seg.Seed, b.off)
}
