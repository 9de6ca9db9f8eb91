// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Each file has its kind at the end of its name.
const (
	SegmentSuffix = ".seg"
	SpareSuffix   = ".spare"
	ReserveSuffix = ".reserve"
)

// FirstCapacity is the size of the first segment. Each is four times the
// last, up to the limit: an empty store is quick to make and small, and a
// busy one soon has large files. Less than this is not worth a file.
const FirstCapacity = 1 << 20

// Segment is one file of the journal that holds batches. Most files are
// recycled: a segment that was freed becomes a spare, and a spare becomes a later
// segment, because to write into blocks that are allocated needs no space and a
// cheaper sync. The bytes of its former life are not erased:
//
//	offset 0   512                  off                                  capacity
//	       ├────┼───────┬───────┬────┼───────┬──────────┬──────┬───────────┤
//	       │head│ batch │ batch │ …  │ batch │  batch   │ seal │  …        │
//	       └────┴───────┴───────┴────┴───────┴──────────┴──────┴───────────┘
//	       salt  written by this segment │ written when it was segment 17
//
// All checksums start from a seed that is made of the segment's number and of a salt,
// which is random and new each time a header is written. So none of the old batches
// passes its checksum, and bytes behind off are the same as noise.
type Segment struct {
	Number uint64
	Name   string
	File   vfs.File
	Seed   uint32
	Head   format.SegmentHead // capacity guarded by the mutex of the WAL, the rest fixed

	// Gone is set before the file is put to another use, so that a reader who
	// finds foreign bytes knows why.
	Gone atomic.Bool
}

// SegmentName returns the name of the file of a segment.
func SegmentName(number uint64) string { return fmt.Sprintf("%010d%s", number, SegmentSuffix) }

// segmentNumber is the reverse of SegmentName.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, SegmentSuffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && SegmentName(n) == name
}

// Position returns the address of an offset in the segment.
func (s *Segment) Position(off uint64) journal.Position {
	return journal.Position(s.Number*s.Head.SegmentSize + off)
}

// Damage returns the error that says what is wrong at an offset.
func (s *Segment) Damage(off uint64, err error) error {
	return &format.DamageError{File: s.Name, Offset: off, Err: err}
}

// OpenSegment opens the segment of that number, in a store with that segment size,
// and checks its header, both copies. A size of zero is any. A file that was caught
// being recycled has the header of another number: that is ErrRecycled, and not
// damage.
func OpenSegment(fsys vfs.FS, number, segmentSize uint64) (*Segment, error) {
	s := &Segment{Number: number, Name: SegmentName(number)}
	file, err := fsys.Open(s.Name)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s.File = Named(file, s.Name)
	err = s.readHead()
	if err == nil && segmentSize != 0 && s.Head.SegmentSize != segmentSize {
		err = s.Damage(0, format.ErrSegmentSize)
	}
	if err != nil {
		return nil, errors.Join(err, s.File.Close())
	}
	return s, nil
}

// ErrRecycled says that a file has the header of another segment: it was to become
// this one, or no longer is.
var ErrRecycled = errors.New("segment was being recycled")

func (s *Segment) readHead() error {
	var b [format.HeaderSize]byte
	if _, err := s.File.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return s.Damage(0, err)
	} else if err != nil { // which says nothing about what is in the file
		return fmt.Errorf("open segment: %w", err)
	}
	one, err1 := format.DecodeSegmentHead(b[:])
	two, err2 := format.DecodeSegmentHead(b[format.HeaderCopy:])
	if err := cmp.Or(err1, err2); err != nil {
		return s.Damage(0, err)
	}
	if one != two {
		return s.Damage(format.HeaderCopy, format.ErrChecksum)
	}
	if one.Number != s.Number {
		return ErrRecycled
	}
	size, err := s.File.Size()
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if uint64(size) < one.Capacity {
		return s.Damage(uint64(size), format.ErrLength)
	}
	s.Head, s.Seed = one, one.Seed()
	return nil
}

func (s *Segment) writeHead() error {
	if _, err := s.File.WriteAt(s.Head.Encode(), 0); err != nil {
		return err
	}
	return s.File.Sync()
}

// FreeAfter returns the bytes left behind off. Some are kept back: for the seal, and
// so that no segment ends at the very end of its positions, which would be the
// address of the next.
func (s *Segment) FreeAfter(off uint64) uint64 {
	kept := off + format.BatchHeader + format.Alignment
	if s.Head.Capacity <= kept {
		return 0
	}
	return s.Head.Capacity - kept
}

// Usable returns what a segment of that capacity can hold in batches, its seal
// not counted.
func Usable(capacity uint64) uint64 {
	const kept = format.HeaderSize + format.BatchHeader + format.Alignment
	return capacity - min(capacity, kept)
}

// Reformat makes the segment empty, in place.
func (s *Segment) Reformat() (*Segment, error) {
	size, err := s.File.Size()
	if err != nil {
		return nil, err
	}
	fresh := &Segment{Number: s.Number, Name: s.Name, File: s.File}
	fresh.Head = format.SegmentHead{Number: s.Number, SegmentSize: s.Head.SegmentSize, Capacity: min(uint64(size), s.Head.SegmentSize), Salt: rand.Uint64()}
	fresh.Seed = fresh.Head.Seed()
	return fresh, fresh.writeHead()
}

// RestoreHead rewrites the header of a segment if only one copy of it is whole, and
// returns what was wrong with it. A file that is of no use, or beyond help, is left
// as it is.
func RestoreHead(fsys vfs.FS, number uint64) (restored, err error) {
	s := &Segment{Number: number, Name: SegmentName(number)}
	if s.File, err = fsys.Open(s.Name); err != nil {
		return nil, err
	}
	err = s.readHead()
	if errors.Is(err, journal.ErrCorrupt) {
		reason := err
		if err = s.rewriteHead(); err == nil {
			restored = reason
		}
	}
	if errors.Is(err, ErrRecycled) || errors.Is(err, journal.ErrCorrupt) {
		err = nil
	}
	return restored, errors.Join(err, s.File.Close())
}

func (s *Segment) rewriteHead() error {
	var b [format.HeaderSize]byte
	if _, err := s.File.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	head, err := format.DecodeSegmentHead(b[:])
	if err != nil {
		if head, err = format.DecodeSegmentHead(b[format.HeaderCopy:]); err != nil {
			return s.Damage(0, err)
		}
	}
	size, err := s.File.Size()
	if err != nil {
		return err
	}
	if uint64(size) < head.Capacity { // the file was cut: its end is lost, and free
		if err := Zero(s.File, uint64(size), head.Capacity); err != nil {
			return err
		}
	}
	s.Head = head
	return s.writeHead()
}
