// SPDX-License-Identifier: Apache-2.0

package wal

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

	headerSize   = 512 // before the first batch: one sector, so it cannot tear
	headerLength = 64  // of that in use, twice
	headerCopy   = 256 // where the second copy lies

	batchMagic  = 0x42514d54 // "TMQB"
	batchHeader = 40
	frameHeader = 24
	alignment   = 8
)

// kind says what a batch is for. Zero is never valid.
type kind uint32

const (
	kindRecords kind = 1 // holds records
	kindStop    kind = 2 // empty: the store was closed here
	kindSeal    kind = 3 // empty: the segment ends here
)

// tombstoneShard in a frame marks a tombstone: records that Repair dropped. Its epoch field
// says how many.
const tombstoneShard = ^journal.Shard(0)

// ownShard in a frame marks a record of the log's own: a manifest.
const ownShard = tombstoneShard - 1

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// Reasons for which bytes are not what was written.
var (
	errChecksum = errors.New("checksum does not match")
	errLength   = errors.New("length is impossible")
	errNumber   = errors.New("number is out of order")
	errBlock    = errors.New("segment size is that of another store")
	errDigest   = errors.New("batch is mixed with another")
	errNoBatch  = errors.New("no batch begins here")
	errNoSeal   = errors.New("segment ends without its seal")
	errMissing  = errors.New("file is missing")
	errMissNext = fmt.Errorf("%w, and the log goes on there", errMissing)
	errShort    = errors.New("log ends before this place, which was synced")
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

// segmentHead is the header of a segment.
type segmentHead struct {
	number   uint64
	block    uint64 // the block size of the store
	capacity uint64 // bytes of the file that may hold batches, this header included
	salt     uint64 // random, new each time the file is put to use
}

// seed returns what the checksums of the segment start from. It makes the frames
// of a recycled file's former life invalid.
func (h segmentHead) seed() uint32 {
	var b [16]byte
	le.PutUint64(b[0:], h.number)
	le.PutUint64(b[8:], h.salt)
	return crc32.Checksum(b[:], castagnoli)
}

// encode returns the whole first sector.
func (h segmentHead) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, segmentMagic)
	le.PutUint16(b[6:], segmentVersion)
	le.PutUint64(b[8:], h.number)
	le.PutUint64(b[16:], h.block)
	le.PutUint64(b[24:], h.capacity)
	le.PutUint64(b[32:], h.salt)
	le.PutUint32(b[headerLength-4:], crc32.Checksum(b[:headerLength-4], castagnoli))
	copy(b[headerCopy:], b[:headerLength])
	return b
}

// decodeSegmentHead reads one copy of a header.
func decodeSegmentHead(b []byte) (segmentHead, error) {
	b = b[:headerLength]
	switch {
	case crc32.Checksum(b[:headerLength-4], castagnoli) != le.Uint32(b[headerLength-4:]):
		return segmentHead{}, errChecksum
	case string(b[:6]) != segmentMagic:
		return segmentHead{}, errors.New("not a segment")
	case le.Uint16(b[6:]) != segmentVersion:
		return segmentHead{}, fmt.Errorf("segment version %d is not known", le.Uint16(b[6:]))
	}
	h := segmentHead{le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])}
	if checkBlock(h.block) != nil || h.capacity < headerSize || h.capacity > h.block ||
		h.number == 0 || h.number >= math.MaxUint64/h.block { // no address would fit
		return segmentHead{}, errLength
	}
	return h, nil
}

// batchHead is the header of a batch.
type batchHead struct {
	kind   kind
	length uint32 // of the batch, this header included
	count  uint32 // of records
	digest uint32 // over the checksums of the frames, which ties them together
	first  uint64 // number of the first record, or of the next one if there is none
	synced journal.Position
}

// encode fills in b, which lies at offset off of a segment with that seed.
func (h batchHead) encode(b []byte, seed uint32, off uint64) {
	le.PutUint32(b[4:], batchMagic)
	le.PutUint32(b[8:], uint32(h.kind))
	le.PutUint32(b[12:], h.length)
	le.PutUint32(b[16:], h.count)
	le.PutUint32(b[20:], h.digest)
	le.PutUint64(b[24:], h.first)
	le.PutUint64(b[32:], uint64(h.synced))
	le.PutUint32(b, checksum(seed, off, b[4:batchHeader]))
}

// decodeBatchHead reads the header at the front of b. Its length is checked
// against capacity, so that the caller may trust it.
func decodeBatchHead(b []byte, seed uint32, off, capacity uint64) (batchHead, error) {
	if len(b) < batchHeader || le.Uint32(b[4:]) != batchMagic {
		return batchHead{}, errNoBatch
	}
	if le.Uint32(b) != checksum(seed, off, b[4:batchHeader]) {
		return batchHead{}, errChecksum
	}
	h := batchHead{
		kind:   kind(le.Uint32(b[8:])),
		length: le.Uint32(b[12:]),
		count:  le.Uint32(b[16:]),
		digest: le.Uint32(b[20:]),
		first:  le.Uint64(b[24:]),
		synced: journal.Position(le.Uint64(b[32:])),
	}
	switch {
	case h.kind < kindRecords || h.kind > kindSeal:
		return batchHead{}, fmt.Errorf("batch kind %d is not known", h.kind)
	case h.length < batchHeader, h.length%alignment != 0, uint64(h.length) > capacity-off:
		return batchHead{}, errLength
	}
	return h, nil
}

// frame is one record as it lies in a batch.
type frame struct {
	shard   journal.Shard
	epoch   uint32
	number  uint64
	payload []byte
}

// records returns how many numbers the frame stands for.
func (f frame) records() uint64 {
	if f.shard == tombstoneShard {
		return uint64(f.epoch)
	}
	return 1
}

// frameSize returns the bytes that a payload takes, its header included.
func frameSize(payload int) int {
	return (frameHeader + payload + alignment - 1) &^ (alignment - 1)
}

// put writes the frame without its checksum, which only the committer can know.
func (f frame) put(b []byte) {
	le.PutUint32(b[4:], uint32(len(f.payload)))
	le.PutUint32(b[8:], uint32(f.shard))
	le.PutUint32(b[12:], f.epoch)
	le.PutUint64(b[16:], f.number)
	n := frameHeader + copy(b[frameHeader:], f.payload)
	clear(b[n:]) // the checksum covers the padding
}

// sumFrame stores the checksum of the whole frame b.
func sumFrame(b []byte, seed uint32, off uint64) uint32 {
	sum := checksum(seed, off, b[4:])
	le.PutUint32(b, sum)
	return sum
}

// decodeFrame reads the frame at the front of b and returns its size too.
func decodeFrame(b []byte, seed uint32, off uint64) (frame, int, error) {
	if len(b) < frameHeader {
		return frame{}, 0, errLength
	}
	length := le.Uint32(b[4:])
	if uint64(length) > uint64(len(b)-frameHeader) {
		return frame{}, 0, errLength
	}
	size := frameSize(int(length))
	if size > len(b) {
		return frame{}, 0, errLength
	}
	if le.Uint32(b) != checksum(seed, off, b[4:size]) {
		return frame{}, 0, errChecksum
	}
	return frame{
		shard:   journal.Shard(le.Uint32(b[8:])),
		epoch:   le.Uint32(b[12:]),
		number:  le.Uint64(b[16:]),
		payload: b[frameHeader : frameHeader+int(length)],
	}, size, nil
}

// checksum is CRC-32C, started from the segment and the place in it, so that
// bytes that moved are as wrong as bytes that changed.
func checksum(seed uint32, off uint64, b []byte) uint32 {
	return crc32.Update(seed^uint32(off), castagnoli, b)
}
