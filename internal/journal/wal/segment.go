// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"errors"
	"fmt"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	segmentSuffix = ".seg"
	spareSuffix   = ".spare"
	reserveSuffix = ".reserve"
	zeroStep      = 1 << 20 // bytes of zeros between syncs, so that commits get their turn
)

var zeros [zeroStep]byte // never written

// segment is one block of the journal: a file that holds batches. Most files are
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
type segment struct {
	number uint64
	name   string
	file   vfs.File
	seed   uint32
	head   format.SegmentHead // capacity guarded by the mutex of the WAL, the rest fixed

	// gone is set before the file is put to another use, so that a reader who
	// finds foreign bytes knows why.
	gone atomic.Bool
}

func segmentName(number uint64) string { return fmt.Sprintf("%010d%s", number, segmentSuffix) }

// segmentNumber is the reverse of segmentName.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && segmentName(n) == name
}

// position returns the address of an offset in the segment.
func (s *segment) position(off uint64) journal.Position {
	return journal.Position(s.number*s.head.Block + off)
}

func (s *segment) damage(off uint64, err error) error {
	return &format.DamageError{File: s.name, Offset: off, Err: err}
}

// openSegment opens the segment of that number, in a store with that segment size,
// and checks its header, both copies. A size of zero is any. A file that was caught
// being recycled has the header of another number: that is errRecycled, and not
// damage.
func openSegment(fsys vfs.FS, number, block uint64) (*segment, error) {
	s := &segment{number: number, name: segmentName(number)}
	file, err := fsys.Open(s.name)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	s.file = named(file, s.name)
	err = s.readHead()
	if err == nil && block != 0 && s.head.Block != block {
		err = s.damage(0, format.ErrBlock)
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

var errRecycled = errors.New("segment was being recycled")

func (s *segment) readHead() error {
	var b [format.HeaderSize]byte
	if _, err := s.file.ReadAt(b[:], 0); errors.Is(err, io.EOF) {
		return s.damage(0, err)
	} else if err != nil { // which says nothing about what is in the file
		return fmt.Errorf("open segment: %w", err)
	}
	one, err1 := format.DecodeSegmentHead(b[:])
	two, err2 := format.DecodeSegmentHead(b[format.HeaderCopy:])
	if err := cmp.Or(err1, err2); err != nil {
		return s.damage(0, err)
	}
	if one != two {
		return s.damage(format.HeaderCopy, format.ErrChecksum)
	}
	if one.Number != s.number {
		return errRecycled
	}
	size, err := s.file.Size()
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if uint64(size) < one.Capacity {
		return s.damage(uint64(size), format.ErrLength)
	}
	s.head, s.seed = one, one.Seed()
	return nil
}

// spare is a file that can become a segment: a recycled one, whose bytes were
// written, or one of the reserve, which merely has its blocks.
type spare struct {
	name string
	file vfs.File
	size uint64
}

func spareName(id uint64) string   { return fmt.Sprintf("%d%s", id, spareSuffix) }
func reserveName(id uint64) string { return fmt.Sprintf("%d%s", id, reserveSuffix) }

// spareID is the reverse of both; zero is none of ours.
func spareID(name string) uint64 {
	digits, ok := strings.CutSuffix(name, spareSuffix)
	if !ok {
		digits = strings.TrimSuffix(name, reserveSuffix)
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

func (p *spare) recycled() bool { return strings.HasSuffix(p.name, spareSuffix) }

// usable returns what groups can use of the segment that it would be.
func (p *spare) usable(block uint64) uint64 { return usable(min(p.size, block)) }

// allocateSpare makes a file with blocks for size bytes, which are durable when it
// returns. On error nothing is left of it.
func allocateSpare(fsys vfs.FS, name string, size uint64) (*spare, error) {
	file, err := fsys.Create(name)
	if err != nil {
		return nil, fmt.Errorf("reserve space: %w", err)
	}
	err = file.Allocate(int64(size))
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = fsys.SyncDir(".")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve space: %w", err), file.Close(), fsys.Remove(name))
	}
	return &spare{name, file, size}, nil
}

// makeSpare makes a file of size zeros. On error nothing is left of it.
func makeSpare(fsys vfs.FS, name string, size uint64) (*spare, error) {
	file, err := fsys.Create(name)
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	if err := zero(file, 0, size); err != nil {
		return nil, errors.Join(fmt.Errorf("make segment: %w", err), file.Close(), fsys.Remove(name))
	}
	return &spare{name, file, size}, nil
}

// zero writes zeros to [from, to) and syncs them. Written space costs a commit
// no metadata, and cannot run out.
func zero(file vfs.File, from, to uint64) error {
	for from < to {
		n := min(to-from, zeroStep)
		if _, err := file.WriteAt(zeros[:n], int64(from)); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// format turns a spare into the empty segment of that number. It is durable,
// name and all, when it returns.
func (p *spare) format(fsys vfs.FS, number, block uint64) (*segment, error) {
	s := &segment{number: number, name: segmentName(number), file: named(p.file, segmentName(number))}
	s.head = format.SegmentHead{Number: number, Block: block, Capacity: min(p.size, block), Salt: rand.Uint64()}
	s.seed = s.head.Seed()
	if err := s.writeHead(); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.name, err)
	}
	if err := fsys.Rename(p.name, s.name); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.name, err)
	}
	p.name = s.name
	if err := fsys.SyncDir("."); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.name, err)
	}
	return s, nil
}

func (s *segment) writeHead() error {
	if _, err := s.file.WriteAt(s.head.Encode(), 0); err != nil {
		return err
	}
	return s.file.Sync()
}
