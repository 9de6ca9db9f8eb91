// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/vfs"
)

// counterHost is a host of counters. A part has two: part p the units 2p and 2p+1. It tells the outside the sum after each command, when that is durable.
type counterHost struct {
	e     *Engine
	tx    *Tx
	eff   machine.Effects
	units map[uint64]*Unit
	next  uint64 // part

	held    Held[string]
	seen    []string     // what the outside has seen
	durable func(Permit) // called before what became durable is advanced; may be nil
	stopped error
}

const (
	kindDefine = 3 // part
	kindDrop   = 5 // part
)

func newCounterHost(e *Engine, tx *Tx) *counterHost {
	return &counterHost{e: e, tx: tx, units: map[uint64]*Unit{}, next: 1}
}

// part makes the units of a part.
func (h *counterHost) part(id uint64) []*Unit {
	for _, id := range []uint64{2 * id, 2*id + 1} {
		h.units[id] = &Unit{ID: id, Machine: &counter{}, Owner: h}
	}
	h.next = max(h.next, id+1)
	return h.Units(id)
}

// remove forgets a part.
func (h *counterHost) remove(id uint64) {
	delete(h.units, 2*id)
	delete(h.units, 2*id+1)
}

func (h *counterHost) counter(id uint64) *counter { return h.units[id].Machine.(*counter) }

func (h *counterHost) Effects() *machine.Effects { return &h.eff }

func (h *counterHost) Replay(kind byte, in *machine.Reader, r *Recovery) error {
	switch id := in.Uint(); kind {
	case kindDefine:
		for _, u := range h.part(id) {
			r.Add(u)
		}
	case kindDrop:
		r.Drop(h.Units(id))
		h.remove(id)
	default:
		return fmt.Errorf("unknown kind %d", kind)
	}
	return nil
}

func (h *counterHost) ReplayPart(in *machine.Reader, r *Recovery) error {
	for _, u := range h.part(in.Uint()) {
		r.AddPart(u)
	}
	return nil
}
func (h *counterHost) ReplayMark(mark uint64)          { h.next = max(h.next, mark) }
func (h *counterHost) ReplayMissing(uint64, *Recovery) {}
func (h *counterHost) Recovered() error                { return nil }
func (h *counterHost) Mark() uint64                    { return h.next }

func (h *counterHost) Units(part uint64) []*Unit {
	if u := h.units[2*part]; u != nil {
		return []*Unit{u, h.units[2*part+1]}
	}
	return nil
}

func (h *counterHost) Parts() (parts []uint64) {
	for id := range h.units {
		if id%2 == 0 {
			parts = append(parts, id/2)
		}
	}
	slices.Sort(parts)
	return parts
}

func (h *counterHost) WritePart(part uint64) {
	h.eff.Uint(part)
	h.eff.End()
}

func (h *counterHost) Moved([]machine.Ref) {}
func (h *counterHost) BeginStep()          {}
func (h *counterHost) Tick(u *Unit) {
	c := u.Machine.(*counter)
	c.due = time.Time{}
	h.add(u.ID, 0, 1, machine.Ref{})
}
func (h *counterHost) TickShort(*Unit) bool      { return false }
func (h *counterHost) Serve()                    {}
func (h *counterHost) Serving() bool             { return false }
func (h *counterHost) Commit()                   {}
func (h *counterHost) Appended(journal.Position) {}
func (h *counterHost) Durable(p Permit) {
	if h.durable != nil {
		h.durable(p)
	}
	h.held.Advance(p, nil)
}
func (h *counterHost) Release(p Permit) {
	h.held.Advance(p, nil)
	h.seen = append(h.seen, h.held.Release(p)...)
}
func (h *counterHost) Drain()            { h.held.Withdraw(func(*string) bool { return true }) }
func (h *counterHost) Stopped(err error) { h.stopped = err }

// add is a command of a counter.
func (h *counterHost) add(id uint64, i int, n uint64, body machine.Ref) {
	u := h.units[id]
	h.tx.WriteAs(u)
	h.counter(id).add(i, n, body, &h.eff)
	h.tx.Collect(u)
	h.tx.Schedule(u)
}

// define adds a part and returns one of its units.
func (h *counterHost) define() uint64 {
	part := h.next
	h.eff.BeginPlain(kindDefine)
	h.eff.Uint(part)
	h.eff.End()
	for _, u := range h.part(part) {
		h.tx.Add(u)
		h.add(u.ID, 0, 0, machine.Ref{})
	}
	return 2*part + 1
}

// drop removes a part.
func (h *counterHost) drop(part uint64) {
	h.eff.BeginPlain(kindDrop)
	h.eff.Uint(part)
	h.eff.End()
	h.tx.Drop(h.Units(part))
	h.remove(part)
}

// state describes everything that a restart must find again.
func (h *counterHost) state() string {
	s := ""
	for _, id := range slices.Sorted(maps.Keys(h.units)) {
		c := h.counter(id)
		s += fmt.Sprintf("%d %v", id, c.sums)
		for _, b := range c.bodies {
			s += fmt.Sprintf(" %d", b.Size)
		}
		s += "\n"
	}
	return s
}

// rig drives one engine by hand: nothing happens between its calls.
type rig struct {
	t          testing.TB
	disk       *vfs.Mem
	opts       Options
	wrap       func(journal.Journal) journal.Journal // around the journal; nil is none
	wal        *wal.WAL
	e          *Engine
	h          *counterHost
	now        time.Time
	damaged    bool // there are bodies that cannot be read
	background []func()
}

func newRig(t testing.TB, opts Options) *rig {
	t.Helper()
	r := &rig{t: t, disk: vfs.NewMem(), opts: opts, now: time.Unix(1_700_000_000, 0)}
	r.opts.Go = func(_ journal.Shard, f func()) { r.background = append(r.background, f) }
	r.open()
	return r
}

func (r *rig) open() {
	r.t.Helper()
	w, err := wal.Open(r.disk, wal.Options{SegmentSize: 1 << 16})
	if err != nil {
		r.t.Fatalf("open the journal: %v", err)
	}
	r.wal, r.background = w, nil
	var j journal.Journal = w
	if r.wrap != nil {
		j = r.wrap(w)
	}
	es, err := Open(r.t.Context(), j, []journal.Shard{0}, r.opts, func(e *Engine, tx *Tx) Host {
		r.h = newCounterHost(e, tx)
		return r.h
	})
	if err != nil {
		r.t.Fatalf("open the engine: %v", err)
	}
	r.e = es[0]
	r.check()
	if !r.damaged {
		r.checkBodies()
	}
}

// checkBodies reads every body that is referred to.
func (r *rig) checkBodies() {
	r.t.Helper()
	for id, u := range r.h.units {
		machine.AllRefs(u.Machine, func(ref machine.Ref) {
			reads := []journal.Read{ReadOf(ref)}
			r.e.Read(r.t.Context(), reads)
			if raw, err := Body(&reads[0]); err != nil || len(raw) != int(ref.Size) {
				r.t.Fatalf("unit %d: body %v: %d bytes, %v", id, ref, len(raw), err)
			}
		})
	}
}

// crash loses what was not durable and comes back.
func (r *rig) crash(seed uint64) {
	r.t.Helper()
	r.disk = r.disk.CrashClone(seed)
	r.open()
}

func (r *rig) check() {
	r.t.Helper()
	if err := r.e.Check(); err != nil {
		r.t.Fatal(err)
	}
}

// step lets the engine work once; what it wrote is not durable yet.
func (r *rig) step() {
	r.t.Helper()
	r.e.Step(r.now)
	if r.e.failed != nil {
		r.t.Fatalf("engine failed: %v", r.e.failed)
	}
}

// work does what the engine wants done in the background.
func (r *rig) work() {
	for len(r.background) > 0 {
		f := r.background[0]
		r.background = r.background[1:]
		f()
	}
}

// commit makes durable what was appended.
func (r *rig) commit() {
	r.t.Helper()
	for range 3 {
		if err := r.wal.Commit(); err != nil {
			r.t.Fatalf("commit: %v", err)
		}
	}
}

// settle works until everything is durable, every answer out, and no snapshot under way.
func (r *rig) settle() {
	r.t.Helper()
	for range 3 {
		r.step()
		r.work()
		r.commit()
	}
	for range 1000 {
		if !r.e.snapshot.busy && len(r.e.stepwise.lines) == 0 {
			break
		}
		r.step()
		r.work()
		r.commit()
	}
	r.step()
}

// do runs fn as a command, and has done called when that is durable.
func (r *rig) do(fn func(h *counterHost), done func()) {
	r.t.Helper()
	err := r.e.Submit(&funcCommand{
		Do: func(*Tx) error { fn(r.h); return nil },
		Done: func(err error) {
			if err == nil && done != nil {
				done()
			}
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// define adds a counter and waits for it.
func (r *rig) define() (id uint64) {
	r.t.Helper()
	r.do(func(h *counterHost) { id = h.define() }, nil)
	r.settle()
	return id
}
