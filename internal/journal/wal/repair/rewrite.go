// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// repairSegment repairs a segment in place and returns the number of the record behind
// it. number is that of its first record, next that of the first one behind it,
// each zero if not known.
func (r *repairer) repairSegment(s *scannedSegment, number, next uint64) (uint64, error) {
	var fixes []store.Span
	var firsts, nexts []uint64
	for sp, err := range s.seg.Spans() {
		if err != nil {
			return 0, err
		}
		if sp.Err == nil {
			if len(nexts) > 0 && nexts[len(nexts)-1] == 0 {
				nexts[len(nexts)-1] = sp.Head.First
			}
			number = sp.Head.First + uint64(sp.Head.Count)
			continue
		}
		if sp.Rest && !s.ends {
			if !r.cutToSynced(s.seg, &sp) {
				break // the end of the log
			}
		}
		if n := len(fixes); n > 0 && fixes[n-1].End == sp.Off {
			fixes[n-1].End, fixes[n-1].Rest = sp.End, sp.Rest // only its header was whole
			continue
		}
		fixes, firsts, nexts = append(fixes, sp), append(firsts, number), append(nexts, 0)
	}
	for i, sp := range fixes {
		if sp.Rest {
			nexts[i] = next
		}
		end, after, err := r.rewriteDamaged(s.seg, sp, firsts[i], nexts[i])
		if err != nil {
			return 0, err
		}
		if sp.Rest {
			number = after
			if err := seal(s.seg, end, number); err != nil {
				return 0, err
			}
		}
	}
	return number, nil
}

// cutToSynced makes of the end of a log, where nothing behind proves that there was
// a batch, the part that the manifest says was synced. It reports whether there is
// any.
func (r *repairer) cutToSynced(seg *store.Segment, sp *store.Span) bool {
	at := r.manifest.Synced
	if r.manifest.Segment(at) != seg.Number || at <= seg.Position(sp.Off+format.BatchHeader) || at > seg.Position(sp.End) {
		return false
	}
	sp.End, sp.Rest = uint64(at)%r.manifest.SegmentSize, false
	return true
}

// seal ends the segment at off.
func seal(seg *store.Segment, off, number uint64) error {
	var b [format.BatchHeader]byte
	format.BatchHead{Kind: format.KindSeal, Length: format.BatchHeader, First: number, Synced: seg.Position(off)}.Encode(b[:], seg.Seed, off)
	if _, err := seg.File.WriteAt(b[:], int64(off)); err != nil {
		return err
	}
	return seg.File.Sync()
}

// rewriteDamaged replaces the damaged bytes of sp by one batch that holds every record
// in them that is whole, and tombstones for the others. It returns where that batch
// ends and the number behind it. Record 42 of a batch is damaged, for instance:
//
//	before  │ header │ 41        │ 42 ▒▒▒▒▒▒▒▒ │ 43   │ 44   │ next batch, first = 45
//	after   │ header │ 41        │ tombstone   │ 43   │ 44   │ next batch, first = 45
//	         count 4              shard 2³²−1, number 42, epoch 1: records that it
//	         new digest           represents, payload of zeros up to 43
//
// Records that are whole stay where they are, since others refer to them by their
// address. The tombstone fills the bytes between them exactly, and its count keeps the
// numbers dense. If the header is damaged, too, the frames are found by their numbers,
// and the batches around say which numbers are possible. Replay yields a tombstone as
// records that are lost; Read at the address of one is ErrFreed.
func (r *repairer) rewriteDamaged(seg *store.Segment, sp store.Span, first, next uint64) (end, number uint64, err error) {
	old := make([]byte, sp.End-sp.Off)
	if _, err := seg.File.ReadAt(old, int64(sp.Off)); err != nil {
		return 0, 0, err
	}
	whole := findFrames(old, seg.Seed, sp.Off, first, next)
	if first == 0 { // nothing before tells us, so what is left has to
		first = max(next, 1)
		if len(whole) > 0 {
			first = whole[0].number
		}
	}
	p := &patch{seg: seg, off: sp.Off, number: first, buf: make([]byte, format.BatchHeader, len(old))}
	for _, f := range whole {
		if err := p.fill(f.at, f.number); err != nil {
			return 0, 0, err
		}
		p.buf = append(p.buf, old[f.at:f.at+f.size]...)
		p.count += f.records
		p.number += uint64(f.records)
	}
	switch lost := max(next, p.number); {
	case !sp.Rest:
		err = p.fill(len(old), lost)
	case lost > p.number:
		err = p.fill(len(p.buf)+format.FrameHeader, lost)
	}
	if err != nil {
		return 0, 0, err
	}
	r.drop(Dropped{File: seg.Name, Offset: sp.Off, First: p.firstLost, Records: p.lost, Reason: sp.Err})
	if len(p.buf) == format.BatchHeader && sp.Rest {
		return sp.Off, p.number, nil // not even a batch was there
	}
	return sp.Off + uint64(len(p.buf)), p.number, p.write(first)
}

// patch is the batch that takes the place of damage.
type patch struct {
	seg       *store.Segment
	off       uint64
	buf       []byte
	number    uint64 // of the next record
	count     uint32
	lost      uint64
	firstLost uint64
}

// fill puts a tombstone from the end of the patch up to at, which represents the
// records up to number.
func (p *patch) fill(at int, number uint64) error {
	size := at - len(p.buf)
	if size == 0 && number == p.number {
		return nil
	}
	if size < format.FrameHeader {
		return p.seg.Damage(p.off+uint64(len(p.buf)), errors.New("no space for a tombstone"))
	}
	n := number - p.number
	if p.lost == 0 {
		p.firstLost = p.number
	}
	tombstone := make([]byte, size)
	format.Frame{Shard: format.TombstoneShard, Epoch: uint32(n), Number: p.number, Payload: make([]byte, size-format.FrameHeader)}.Put(tombstone)
	format.SumFrame(tombstone, p.seg.Seed, p.off+uint64(len(p.buf)))
	p.buf = append(p.buf, tombstone...)
	p.count, p.lost, p.number = p.count+uint32(n), p.lost+n, number
	return nil
}

func (p *patch) write(first uint64) error {
	digest := uint32(0)
	for at := range format.Frames(p.buf) {
		digest = format.AddToDigest(digest, p.buf[at:])
	}
	format.BatchHead{
		Kind: format.KindRecords, Length: uint32(len(p.buf)), Count: p.count,
		Digest: digest, First: first, Synced: p.seg.Position(p.off),
	}.Encode(p.buf, p.seg.Seed, p.off)
	if _, err := p.seg.File.WriteAt(p.buf, int64(p.off)); err != nil {
		return err
	}
	return p.seg.File.Sync()
}

// foundFrame is a frame that is whole, amid damage.
type foundFrame struct {
	at, size int
	number   uint64
	records  uint32
}

// findFrames finds the whole frames in b, which lies at off, numbered from first
// up to next as far as these are known. Only frames with possible numbers are
// decoded, so that garbage costs little.
func findFrames(b []byte, seed uint32, off, first, next uint64) []foundFrame {
	var found []foundFrame
	expect := first
	for at := format.BatchHeader; at+format.FrameHeader <= len(b); {
		n := binary.LittleEndian.Uint64(b[at+16:])
		possible := n >= max(expect, 1) && (next == 0 || n < next) &&
			(expect == 0 || n-expect <= uint64(len(b)/format.FrameHeader))
		if possible {
			f, size, err := format.DecodeFrame(b[at:], seed, off+uint64(at))
			// A frame without space for a tombstone before it is dropped, too.
			if err == nil && (n == expect || len(found) == 0 || at-found[len(found)-1].end() >= format.FrameHeader) {
				found = append(found, foundFrame{at, size, n, uint32(f.Records())})
				expect = n + f.Records()
				at += size
				continue
			}
		}
		at += format.Alignment
	}
	return found
}

func (f foundFrame) end() int { return f.at + f.size }

// replace makes a new segment in place of one that is lost, with nothing in it
// but the tombstone.
func (r *repairer) replace(s *scannedSegment, number, next uint64) error {
	var err error
	if s.seg, err = r.makeSegment(s.number, tombstoneSegment); err != nil {
		return err
	}
	if number == 0 {
		number = next
	}
	h := &patch{seg: s.seg, off: format.HeaderSize, number: number, buf: make([]byte, format.BatchHeader)}
	if err := h.fill(format.BatchHeader+format.FrameHeader, next); err != nil {
		return err
	}
	r.drop(Dropped{File: s.seg.Name, First: number, Records: h.lost, Reason: s.err})
	if err := h.write(number); err != nil {
		return err
	}
	return seal(s.seg, format.HeaderSize+uint64(len(h.buf)), next)
}

// makeSegment makes an empty segment, in place of one of that number if there is.
func (r *repairer) makeSegment(number, size uint64) (*store.Segment, error) {
	const spareFile = "0" + store.SpareSuffix // no other spare has this number
	if err := r.fs.Remove(spareFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p, err := store.MakeSpare(r.fs, spareFile, size)
	if err != nil {
		return nil, err
	}
	s, err := p.Format(r.fs, number, r.manifest.SegmentSize)
	if err != nil {
		return nil, errors.Join(err, p.File.Close())
	}
	return s, nil
}

// tombstoneSegment is the size of a segment that holds a tombstone and nothing else.
const tombstoneSegment = 4 << 10
