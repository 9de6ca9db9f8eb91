// SPDX-License-Identifier: Apache-2.0

package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/triagemq/triagemq/internal/journal"
)

// The bytes on disk; docs/format/journal.md draws them. None of these numbers
// ever changes: a new format gets a new version.
const (
	segmentMagic   = "TMQSEG"
	segmentVersion = 1

	HeaderSize   = 512 // before the first batch: one sector, so it cannot tear
	HeaderLength = 64  // of that in use, twice
	HeaderCopy   = 256 // where the second copy lies

	BatchMagic  = 0x42514d54 // "TMQB"
	BatchHeader = 40
	FrameHeader = 24
	Alignment   = 8
)

// Kind says what a batch is for. Zero is never valid.
type Kind uint32

const (
	KindRecords Kind = 1 // holds records
	KindStop    Kind = 2 // empty: the store was closed here
	KindSeal    Kind = 3 // empty: the segment ends here
)

// TombstoneShard in a frame marks a tombstone: records that a repair dropped. Its epoch
// says how many.
const TombstoneShard = ^journal.Shard(0)

// OwnShard in a frame marks a record of the log's own: a manifest.
const OwnShard = TombstoneShard - 1

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Reasons for which bytes are not what was written.
var (
	ErrChecksum    = errors.New("checksum does not match")
	ErrLength      = errors.New("length is impossible")
	ErrNumber      = errors.New("number is out of order")
	ErrSegmentSize = errors.New("segment size is that of another store")
	ErrDigest      = errors.New("batch is mixed with another")
	ErrNoBatch     = errors.New("no batch begins here")
	ErrNoSeal      = errors.New("segment ends without its seal")
	ErrMissing     = errors.New("file is missing")
	ErrMissNext    = fmt.Errorf("%w, and the log goes on there", ErrMissing)
	ErrShort       = errors.New("log ends before this place, which was synced")
)

// DamageError says where stored bytes are not what was written. It wraps
// journal.ErrCorrupt.
type DamageError struct {
	File   string
	Offset uint64
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d: %v", journal.ErrCorrupt, e.File, e.Offset, e.Err)
}

// Unwrap makes errors.Is find journal.ErrCorrupt and the reason.
func (e *DamageError) Unwrap() []error { return []error{journal.ErrCorrupt, e.Err} }

// SegmentHead is the header of a segment.
type SegmentHead struct {
	Number      uint64
	SegmentSize uint64 // of the store
	Capacity    uint64 // bytes of the file that may hold batches, this header included
	Salt        uint64 // random, new each time the file is put to use
}

// Seed returns what the checksums of the segment start from. It makes the frames
// of a recycled file's former life invalid.
func (h SegmentHead) Seed() uint32 {
	var b [16]byte
	le.PutUint64(b[0:], h.Number)
	le.PutUint64(b[8:], h.Salt)
	return crc32.Checksum(b[:], castagnoli)
}

// Encode returns the whole first sector.
func (h SegmentHead) Encode() []byte {
	b := make([]byte, HeaderSize)
	copy(b, segmentMagic)
	le.PutUint16(b[6:], segmentVersion)
	le.PutUint64(b[8:], h.Number)
	le.PutUint64(b[16:], h.SegmentSize)
	le.PutUint64(b[24:], h.Capacity)
	le.PutUint64(b[32:], h.Salt)
	le.PutUint32(b[HeaderLength-4:], crc32.Checksum(b[:HeaderLength-4], castagnoli))
	copy(b[HeaderCopy:], b[:HeaderLength])
	return b
}

// DecodeSegmentHead reads one copy of a header.
func DecodeSegmentHead(b []byte) (SegmentHead, error) {
	b = b[:HeaderLength]
	switch {
	case crc32.Checksum(b[:HeaderLength-4], castagnoli) != le.Uint32(b[HeaderLength-4:]):
		return SegmentHead{}, ErrChecksum
	case string(b[:6]) != segmentMagic:
		return SegmentHead{}, errors.New("not a segment")
	case le.Uint16(b[6:]) != segmentVersion:
		return SegmentHead{}, fmt.Errorf("segment version %d is not known", le.Uint16(b[6:]))
	}
	h := SegmentHead{le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])}
	if CheckSegmentSize(h.SegmentSize) != nil || h.Capacity < HeaderSize || h.Capacity > h.SegmentSize ||
		h.Number == 0 || h.Number >= math.MaxUint64/h.SegmentSize { // no address would fit
		return SegmentHead{}, ErrLength
	}
	return h, nil
}

// BatchHead is the header of a batch.
type BatchHead struct {
	Kind   Kind
	Length uint32 // of the batch, this header included
	Count  uint32 // of records
	Digest uint32 // over the checksums of the frames, which ties them together
	First  uint64 // number of the first record, or of the next one if there is none
	Synced journal.Position
}

// Encode fills in b, which lies at offset off of a segment with that seed.
func (h BatchHead) Encode(b []byte, seed uint32, off uint64) {
	le.PutUint32(b[4:], BatchMagic)
	le.PutUint32(b[8:], uint32(h.Kind))
	le.PutUint32(b[12:], h.Length)
	le.PutUint32(b[16:], h.Count)
	le.PutUint32(b[20:], h.Digest)
	le.PutUint64(b[24:], h.First)
	le.PutUint64(b[32:], uint64(h.Synced))
	le.PutUint32(b, checksum(seed, off, b[4:BatchHeader]))
}

// DecodeBatchHead reads the header at the front of b. Its length is checked
// against capacity, so that the caller may trust it.
func DecodeBatchHead(b []byte, seed uint32, off, capacity uint64) (BatchHead, error) {
	if len(b) < BatchHeader || le.Uint32(b[4:]) != BatchMagic {
		return BatchHead{}, ErrNoBatch
	}
	if le.Uint32(b) != checksum(seed, off, b[4:BatchHeader]) {
		return BatchHead{}, ErrChecksum
	}
	h := BatchHead{
		Kind:   Kind(le.Uint32(b[8:])),
		Length: le.Uint32(b[12:]),
		Count:  le.Uint32(b[16:]),
		Digest: le.Uint32(b[20:]),
		First:  le.Uint64(b[24:]),
		Synced: journal.Position(le.Uint64(b[32:])),
	}
	switch {
	case h.Kind < KindRecords || h.Kind > KindSeal:
		return BatchHead{}, fmt.Errorf("batch kind %d is not known", h.Kind)
	case h.Length < BatchHeader, h.Length%Alignment != 0, uint64(h.Length) > capacity-off:
		return BatchHead{}, ErrLength
	}
	return h, nil
}

// Frame is one record as it lies in a batch.
type Frame struct {
	Shard   journal.Shard
	Epoch   uint32
	Number  uint64
	Payload []byte
}

// Records returns how many numbers the frame represents.
func (f Frame) Records() uint64 {
	if f.Shard == TombstoneShard {
		return uint64(f.Epoch)
	}
	return 1
}

// FrameSize returns the bytes that a payload takes, its header included.
func FrameSize(payload int) int {
	return (FrameHeader + payload + Alignment - 1) &^ (Alignment - 1)
}

// Put writes the frame without its checksum, which only the committer can know.
func (f Frame) Put(b []byte) {
	le.PutUint32(b[4:], uint32(len(f.Payload)))
	le.PutUint32(b[8:], uint32(f.Shard))
	le.PutUint32(b[12:], f.Epoch)
	le.PutUint64(b[16:], f.Number)
	n := FrameHeader + copy(b[FrameHeader:], f.Payload)
	clear(b[n:]) // the checksum covers the padding
}

// SumFrame stores the checksum of the whole frame b.
func SumFrame(b []byte, seed uint32, off uint64) uint32 {
	sum := checksum(seed, off, b[4:])
	le.PutUint32(b, sum)
	return sum
}

// DecodeFrame reads the frame at the front of b and returns its size too.
func DecodeFrame(b []byte, seed uint32, off uint64) (Frame, int, error) {
	if len(b) < FrameHeader {
		return Frame{}, 0, ErrLength
	}
	length := le.Uint32(b[4:])
	if uint64(length) > uint64(len(b)-FrameHeader) {
		return Frame{}, 0, ErrLength
	}
	size := FrameSize(int(length))
	if size > len(b) {
		return Frame{}, 0, ErrLength
	}
	if le.Uint32(b) != checksum(seed, off, b[4:size]) {
		return Frame{}, 0, ErrChecksum
	}
	return Frame{
		Shard:   journal.Shard(le.Uint32(b[8:])),
		Epoch:   le.Uint32(b[12:]),
		Number:  le.Uint64(b[16:]),
		Payload: b[FrameHeader : FrameHeader+int(length)],
	}, size, nil
}

// AddToDigest returns the digest of a batch with one more frame, b, whose checksum is
// known.
func AddToDigest(digest uint32, b []byte) uint32 { return crc32.Update(digest, castagnoli, b[:4]) }

// checksum is CRC-32C, started from the segment and the place in it, so that
// bytes that moved are as wrong as bytes that changed.
func checksum(seed uint32, off uint64, b []byte) uint32 {
	return crc32.Update(seed^uint32(off), castagnoli, b)
}

// CheckSegmentSize reports whether a segment size can be used.
func CheckSegmentSize(size uint64) error {
	if size < 4<<10 || size > 1<<30 || size%512 != 0 {
		return fmt.Errorf("wal: segment size %d is not a multiple of 512 between 4 KiB and 1 GiB", size)
	}
	return nil
}
