// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// The kinds of record that are the engine's. They are on disk and never change; zero is
// none. All others are the host's.
const (
	kindBody          = 1  // the rest is the body
	kindUnit          = 2  // unit, record of its machine
	kindSnapshotBegin = 7  // number, the host's mark, segments with bytes written
	kindSnapshotPart  = 8  // number, what the host says of one of its parts
	kindSnapshotUnit  = 9  // number, unit, record of its machine
	kindSnapshotEnd   = 10 // number
)

var errRecord = errors.New("engine: malformed record")

// unitPrefix is what goes before the records of a unit.
func unitPrefix(id uint64) []byte { return binary.AppendUvarint([]byte{kindUnit}, id) }

// record starts a record of the engine's own; the caller appends to e.eff and ends it.
func (e *Engine) record(kind byte, number uint64) {
	e.eff.BeginPlain(kind)
	e.eff.Uint(number)
}

// appendRecords adds the records of the open group to the journal.
func (e *Engine) appendRecords() error {
	arena, ends := e.eff.Written()
	from := 0
	for _, end := range ends {
		e.append.Records = append(e.append.Records, arena[from:end])
		from = end
	}
	_, err := e.appendGroup()
	return err
}

// appendArgs is the argument of one journal append, kept for reuse.
type appendArgs struct {
	journal.Group
	arena []byte
}

// appendGroup appends e.append and returns where its records are, valid until
// the next one.
func (e *Engine) appendGroup() ([]journal.Position, error) {
	g := &e.append
	g.At = slices.Grow(g.At[:0], len(g.Records))[:len(g.Records)]
	err := e.journal.Append(e.claim, &g.Group)
	if err == nil {
		for i, p := range g.At {
			e.live.Wrote(p, len(g.Records[i]))
			e.written.All += uint64(len(g.Records[i]))
		}
		e.tail = g.At[len(g.At)-1]
	} else {
		err = fmt.Errorf("append %d records: %w", len(g.Records), err)
	}
	clear(g.Records)
	g.Records = g.Records[:0]
	return g.At, err
}

// store appends bodies; see Tx.Store. They need not be one group.
func (e *Engine) store(use journal.Use, raws [][]byte, refs []machine.Ref) error {
	needs := e.needs
	e.needs = Needs{}
	e.append.Use = use
	defer func() { e.append.Use, e.append.More = journal.Essential, journal.Reservation{} }()
	if use == journal.Ordinary {
		if needs == (Needs{}) {
			needs = Needs{Records: unknown * len(raws), Items: len(raws), Snapshot: unknown * len(raws)}
		}
		e.append.More = needs.reservation()
	}
	const piece = 1 << 20 // more than this in one group gains nothing
	for from := 0; from < len(raws); {
		size, to := 0, from
		for to < len(raws) && (to == from || size+len(raws[to]) < piece) {
			size += 1 + len(raws[to])
			to++
		}
		err := e.storeGroup(raws[from:to], refs[from:to], size)
		if more := e.append.More; err == nil {
			e.reserved.newer = e.reserved.newer.Plus(more)
			e.append.More = journal.Reservation{} // counts once
		}
		if err != nil {
			switch {
			case errors.Is(err, journal.ErrFull):
				return ErrDiskFull
			case errors.Is(err, journal.ErrBusy):
				return journal.ErrBusy
			case !errors.Is(err, journal.ErrTooLarge):
				e.failed = err
			}
			return err
		}
		from = to
	}
	return nil
}

func (e *Engine) storeGroup(raws [][]byte, refs []machine.Ref, size int) error {
	g := &e.append
	g.arena = slices.Grow(g.arena[:0], size)
	for _, raw := range raws {
		from := len(g.arena)
		g.arena = append(append(g.arena, kindBody), raw...)
		g.Records = append(g.Records, g.arena[from:])
	}
	at, err := e.appendGroup()
	if err != nil {
		return err
	}
	for i, p := range at {
		refs[i] = machine.Ref{At: uint64(p), Size: uint32(len(raws[i]))}
	}
	return nil
}

func (e *Engine) storeOne(raw []byte) (machine.Ref, error) {
	var ref [1]machine.Ref
	err := e.store(journal.Essential, [][]byte{raw}, ref[:])
	return ref[0], err
}

// Body returns the body that was read with ReadOf.
func Body(r *journal.Read) ([]byte, error) {
	if r.Err != nil {
		return nil, fmt.Errorf("read body at %d: %w", r.At, r.Err)
	}
	if len(r.Buf) == 0 || r.Buf[0] != kindBody {
		return nil, fmt.Errorf("read body at %d: %w: not a body", r.At, journal.ErrCorrupt)
	}
	return r.Buf[1:], nil
}

// account follows which bodies are referred to, and returns those that are not any more,
// valid until the next command.
func (e *Engine) account() (freed []machine.Ref) {
	for _, ref := range e.eff.Added {
		e.live.Add(ref)
	}
	for _, ref := range e.eff.Freed {
		e.live.Free(ref)
	}
	freed = e.eff.Freed
	e.eff.ResetRefs()
	return freed
}
