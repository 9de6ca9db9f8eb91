// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// The kinds of record. They are on disk and never change; zero is none.
const (
	kindBody          = 1 // the rest is the body
	kindQueue         = 2 // slot, queue record
	kindDefine        = 3 // entity, name, meta: a new entity
	kindRedefine      = 4 // entity, meta
	kindDrop          = 5 // entity
	kindPublished     = 6 // entity, count: messages a topic has seen
	kindSnapshotBegin = 7 // number, next entity, blocks with bytes written
	kindSnapshotPart  = 8 // number, entity, name, meta, count
	kindSnapshotQueue = 9 // number, slot, queue record
	kindSnapshotEnd   = 10
	kindNote          = 11 // entity, bytes
)

var errRecord = errors.New("shard: malformed record")

// record starts a record of the shard's own; the caller appends to s.eff and ends it.
func (s *Shard) record(kind byte, id uint64) {
	s.eff.BeginPlain(kind)
	s.eff.Uint(id)
}

// out returns where a command of the slot's queue writes what it does.
func (s *Shard) out(sl *slot) *queue.Effects {
	s.eff.SetPrefix(sl.prefix)
	return &s.eff
}

// appendRecords adds the records of the step to the journal as one group.
func (s *Shard) appendRecords() error {
	arena, ends := s.eff.Written()
	from := 0
	for _, end := range ends {
		s.group.Records = append(s.group.Records, arena[from:end])
		from = end
	}
	_, err := s.appendGroup()
	return err
}

// group is the argument of one journal append, kept for reuse.
type group struct {
	journal.Group
	arena []byte
}

// appendGroup appends s.group and returns where its records are, valid until
// the next one.
func (s *Shard) appendGroup() ([]journal.Position, error) {
	g := &s.group
	g.At = slices.Grow(g.At[:0], len(g.Records))[:len(g.Records)]
	err := s.journal.Append(s.claim, &g.Group)
	if err == nil {
		for i, p := range g.At {
			s.live.wrote(p, len(g.Records[i]))
			s.written.all += uint64(len(g.Records[i]))
		}
		s.tail = g.At[len(g.At)-1]
	} else {
		err = fmt.Errorf("append %d records: %w", len(g.Records), err)
	}
	clear(g.Records)
	g.Records = g.Records[:0]
	return g.At, err
}

// bodies appends messages and stores where each one is. Nothing refers to them
// yet: a crash before the queue's record leaves garbage, no message, which is why
// they need not be one group. ErrTooLarge and ErrDiskFull refuse them, and
// journal.ErrBusy for the moment; any other error is the shard's end.
func (s *Shard) bodies(use journal.Use, raws [][]byte, refs []queue.Ref) error {
	s.group.Use = use
	defer func() { s.group.Use = journal.Essential }()
	const piece = 1 << 20 // more than this in one group gains nothing
	for from := 0; from < len(raws); {
		size, to := 0, from
		for to < len(raws) && (to == from || size+len(raws[to]) < piece) {
			size += 1 + len(raws[to])
			to++
		}
		if err := s.bodyGroup(raws[from:to], refs[from:to], size); err != nil {
			switch {
			case errors.Is(err, journal.ErrFull):
				return ErrDiskFull
			case errors.Is(err, journal.ErrBusy):
				return journal.ErrBusy
			case !errors.Is(err, journal.ErrTooLarge):
				s.failed = err
			}
			return err
		}
		from = to
	}
	return nil
}

func (s *Shard) bodyGroup(raws [][]byte, refs []queue.Ref, size int) error {
	g := &s.group
	g.arena = slices.Grow(g.arena[:0], size)
	for _, raw := range raws {
		from := len(g.arena)
		g.arena = append(append(g.arena, kindBody), raw...)
		g.Records = append(g.Records, g.arena[from:])
	}
	at, err := s.appendGroup()
	if err != nil {
		return err
	}
	for i, p := range at {
		refs[i] = queue.Ref{At: uint64(p), Size: uint32(len(raws[i]))}
	}
	return nil
}

// body appends one message.
func (s *Shard) body(raw []byte) (queue.Ref, error) {
	var ref [1]queue.Ref
	err := s.bodies(journal.Essential, [][]byte{raw}, ref[:])
	return ref[0], err
}

// readOf asks the journal for a body.
func readOf(ref queue.Ref) journal.Read {
	return journal.Read{At: journal.Position(ref.At), Buf: make([]byte, 0, ref.Size+1)}
}

// parseBody returns the message that was read.
func parseBody(r *journal.Read) (*message.Message, error) {
	if r.Err != nil {
		return nil, fmt.Errorf("read body at %d: %w", r.At, r.Err)
	}
	if len(r.Buf) == 0 || r.Buf[0] != kindBody {
		return nil, fmt.Errorf("read body at %d: %w: not a body", r.At, journal.ErrCorrupt)
	}
	m, err := message.ParseStored(r.Buf[1:])
	if err != nil {
		return nil, fmt.Errorf("parse body at %d: %w", r.At, err)
	}
	return m, nil
}
