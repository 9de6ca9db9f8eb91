// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// ZeroStep is how many bytes of zeros are written between syncs, so that commits get
// their turn.
const ZeroStep = 1 << 20

var zeros [ZeroStep]byte // never written

// Spare is a file that can become a segment: a recycled one, whose bytes were
// written, or one of the reserve, which merely has its blocks.
type Spare struct {
	Name string
	File vfs.File
	Size uint64
}

// SpareName and ReserveName return the name of the file of a spare, by its kind.
func SpareName(id uint64) string   { return fmt.Sprintf("%d%s", id, SpareSuffix) }
func ReserveName(id uint64) string { return fmt.Sprintf("%d%s", id, ReserveSuffix) }

// SpareID is the reverse of both; zero is none of ours.
func SpareID(name string) uint64 {
	digits, ok := strings.CutSuffix(name, SpareSuffix)
	if !ok {
		digits = strings.TrimSuffix(name, ReserveSuffix)
	}
	id, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Recycled reports whether the bytes of the file were written.
func (p *Spare) Recycled() bool { return strings.HasSuffix(p.Name, SpareSuffix) }

// Usable returns what groups can use of the segment that it would be.
func (p *Spare) Usable(segmentSize uint64) uint64 { return Usable(min(p.Size, segmentSize)) }

// AllocateSpare makes a file with blocks for size bytes, which are durable when it
// returns. On error nothing is left of it.
func AllocateSpare(fsys vfs.FS, name string, size uint64) (*Spare, error) {
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
	return &Spare{name, file, size}, nil
}

// MakeSpare makes a file of size zeros. On error nothing is left of it.
func MakeSpare(fsys vfs.FS, name string, size uint64) (*Spare, error) {
	file, err := fsys.Create(name)
	if err != nil {
		return nil, fmt.Errorf("make segment: %w", err)
	}
	if err := Zero(file, 0, size); err != nil {
		return nil, errors.Join(fmt.Errorf("make segment: %w", err), file.Close(), fsys.Remove(name))
	}
	return &Spare{name, file, size}, nil
}

// Zero writes zeros to [from, to) and syncs them. Written space costs a commit
// no metadata, and cannot run out.
func Zero(file vfs.File, from, to uint64) error {
	for from < to {
		n := min(to-from, ZeroStep)
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

// Format turns a spare into the empty segment of that number. It is durable,
// name and all, when it returns.
func (p *Spare) Format(fsys vfs.FS, number, segmentSize uint64) (*Segment, error) {
	s := &Segment{Number: number, Name: SegmentName(number), File: Named(p.File, SegmentName(number))}
	s.Head = format.SegmentHead{Number: number, SegmentSize: segmentSize, Capacity: min(p.Size, segmentSize), Salt: rand.Uint64()}
	s.Seed = s.Head.Seed()
	if err := s.writeHead(); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.Name, err)
	}
	if err := fsys.Rename(p.Name, s.Name); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.Name, err)
	}
	p.Name = s.Name
	if err := fsys.SyncDir("."); err != nil {
		return nil, fmt.Errorf("format %s: %w", s.Name, err)
	}
	return s, nil
}
