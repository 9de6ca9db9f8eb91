// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
)

// indexVersion is the first byte of an index. It is on disk and never changes.
const indexVersion = 1

// leastBatch is how many bytes a batch takes in an encoding at least.
const leastBatch = 5

// appendBatches encodes batches, each as its difference to the one before:
//
//	n │ gap, events, milliseconds, position, size │ gap, …
//
// gap is how many numbers are missing before the batch, which is none unless records
// were lost.
func appendBatches(dst []byte, batches []Batch) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(batches)))
	var last Batch
	for i := range batches {
		b := &batches[i]
		dst = binary.AppendUvarint(dst, uint64(b.First-last.End()))
		dst = binary.AppendUvarint(dst, uint64(b.Count))
		dst = binary.AppendUvarint(dst, uint64(b.At-last.At))
		dst = binary.AppendUvarint(dst, b.Body.At-last.Body.At)
		dst = binary.AppendUvarint(dst, uint64(b.Body.Size))
		last = *b
	}
	return dst
}

// readBatches reads what appendBatches wrote, appended to dst. It makes r bad if a
// number does not fit.
func readBatches(r *machine.Reader, dst []Batch) []Batch {
	n := r.UpTo(uint64(r.Len()/leastBatch) + 1)
	var last Batch
	for range n {
		var b Batch
		b.First = last.End() + SeqNo(r.UpTo(uint64(maxSeq-last.End())))
		b.Count = uint32(r.UpTo(uint64(min(maxSeq-b.First, math.MaxUint32))))
		b.At = readSince(r, last.At)
		b.Body.At = last.Body.At + r.UpTo(math.MaxUint64-last.Body.At)
		b.Body.Size = r.Uint32()
		if b.Count == 0 || b.Body.At == 0 {
			r.Fail()
		}
		if r.Bad() {
			return dst
		}
		dst = append(dst, b)
		last = b
	}
	return dst
}

// DecodeIndex returns the batches of a block, appended to dst: raw is what is stored at
// its Index. ErrIndex means that it is not the index of this block.
func DecodeIndex(raw []byte, of Block, dst []Batch) ([]Batch, error) {
	r := machine.NewReader(raw)
	if r.Byte() != indexVersion {
		return dst, fmt.Errorf("%w: unknown version", ErrIndex)
	}
	from := len(dst)
	dst = readBatches(&r, dst)
	got := dst[from:]
	if r.Bad() || r.Len() > 0 || len(got) == 0 {
		return dst[:from], fmt.Errorf("%w: malformed", ErrIndex)
	}
	if blockOf(got, of.Index) != of {
		return dst[:from], fmt.Errorf("%w: it is that of events %d to %d", ErrIndex, got[0].First, got[len(got)-1].End()-1)
	}
	return dst, nil
}
