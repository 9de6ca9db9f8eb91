// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine/retention"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Open claims shards of the journal and replays their histories in one pass, unless ctx
// ends before. host makes the host of each; it may keep tx. The caller then calls Run of
// each engine, or Step by hand.
func Open(ctx context.Context, j journal.Journal, numbers []journal.Shard, opts Options, host func(e *Engine, tx *Tx) Host) ([]*Engine, error) {
	claims, records, err := j.Claim(ctx, numbers...)
	if err != nil {
		return nil, fmt.Errorf("claim %d shards: %w", len(numbers), err)
	}
	opts = opts.withDefaults() // once: all of them share a clock
	engines := make([]*Engine, len(claims))
	recoveries := make(map[journal.Shard]*Recovery, len(claims))
	for i, claim := range claims {
		engines[i] = newEngine(ctx, j, claim, opts, host)
		recoveries[claim.Shard] = &Recovery{e: engines[i]}
	}
	for rec, err := range records {
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if err := recoveries[rec.Shard].apply(rec); err != nil {
			return nil, fmt.Errorf("replay shard %d: record at %d: %w", rec.Shard, rec.At, err)
		}
	}
	for _, e := range engines {
		if err := recoveries[e.claim.Shard].finish(); err != nil {
			return nil, fmt.Errorf("replay shard %d: %w", e.claim.Shard, err)
		}
		// The wall clock may have been set back since the last life.
		for _, u := range e.units { // each by itself: one that a wrong clock has written is not followed
			opts.Clock.AtLeast(u.Machine.Latest())
		}
		known := j.Status(e.claim)
		e.mail.report(journal.Status{Lease: known.Lease, Err: known.Err}) // the rest is news of the next commit
		j.Watch(e.claim, e.mail.report)
	}
	return engines, nil
}

func newEngine(ctx context.Context, j journal.Journal, claim journal.Claim, opts Options, host func(*Engine, *Tx) Host) *Engine {
	e := &Engine{
		opts:       opts,
		journal:    j,
		claim:      claim,
		mail:       newMailbox(opts.Mailbox),
		units:      make(map[uint64]*Unit),
		live:       retention.NewLiveness(claim),
		nextTake:   maxTake,
		groupLimit: min(claim.MaxGroup/4, 1<<20),
	}
	if e.opts.BodiesStay {
		e.opts.SnapshotAfter = min(e.opts.SnapshotAfter, claim.SegmentSize)
	}
	if e.opts.Go == nil {
		e.opts.Go = func(_ journal.Shard, work func()) { e.work.Go(work) }
	}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	e.readCtx, e.endReads = context.WithCancel(e.ctx)
	e.tx.e = e
	e.host = host(e, &e.tx)
	e.eff = e.host.Effects()
	return e
}

// Recovery brings an engine back from its records.
type Recovery struct {
	e *Engine
	// loading is the number of the snapshot that the history begins with; zero
	// if it begins with nothing. Pieces of any other snapshot only repeat what
	// is known, but for the bodies they moved.
	loading uint64
	// loaded says that the end of that snapshot has come.
	loaded bool
	first  journal.Position
	// gone are the units that were dropped since records are known to be missing.
	gone map[uint64]bool
}

// Losses is what is missing because a repair of the journal has dropped records.
type Losses struct {
	// Records is how many were dropped where the history of the shard may have had them;
	// some may have been of other shards.
	Records uint64
	// Undefined counts the records that were left out, by the unit they were of, since
	// it is not defined any more.
	Undefined map[uint64]int
}

// Losses returns what was missing when the engine was opened.
func (e *Engine) Losses() Losses { return e.losses }

// Damaged reports whether records of the history may be missing before this one, because a
// repair has dropped them.
func (r *Recovery) Damaged() bool { return r.e.losses.Records > 0 }

// lose notes that records are missing.
func (r *Recovery) lose(n uint64) {
	r.e.losses.Records += n
	for _, id := range slices.Sorted(maps.Keys(r.e.units)) {
		if m, ok := r.e.units[id].Machine.(machine.Tolerant); ok {
			m.Lost()
		}
	}
}

// undefined returns the unit of a record that nothing has defined, if the host knows it. Else
// the record is left out.
func (r *Recovery) undefined(id uint64) *Unit {
	if r.gone[id] {
		return nil
	}
	r.e.host.ReplayMissing(id, r)
	u := r.e.units[id]
	if u == nil {
		if r.e.losses.Undefined == nil {
			r.e.losses.Undefined = make(map[uint64]int)
		}
		r.e.losses.Undefined[id]++
	}
	return u
}

// tolerate prepares a new unit for records about what is missing.
func (r *Recovery) tolerate(u *Unit) {
	if m, ok := u.Machine.(machine.Tolerant); ok && r.Damaged() {
		m.Tolerate()
	}
}

// snapshotOver says that the snapshot brings no more units.
func (r *Recovery) snapshotOver() {
	if r.Damaged() {
		for _, u := range r.e.units {
			u.restored = true
		}
	}
}

// Add adds a unit that did not exist before: a record has defined it.
func (r *Recovery) Add(u *Unit) {
	u.restored = true
	r.tolerate(u)
	r.e.add(u)
}

// AddPart adds a unit that the snapshot has. Until it has begun to bring it, records of
// the unit are about what it will show.
func (r *Recovery) AddPart(u *Unit) {
	r.tolerate(u)
	r.e.add(u)
}

// Drop forgets units.
func (r *Recovery) Drop(us []*Unit) {
	for _, u := range us {
		machine.AllRefs(u.Machine, r.e.live.Free)
		if r.gone == nil {
			r.gone = make(map[uint64]bool)
		}
		r.gone[u.ID] = true
	}
	r.e.forget(us)
}

// Partial reports whether units may be missing because the snapshot has not
// brought them yet.
func (r *Recovery) Partial() bool { return r.loading != 0 && !r.loaded }

func (r *Recovery) apply(rec journal.Record) error {
	e := r.e
	if rec.Lost > 0 {
		r.lose(rec.Lost)
		return nil
	}
	if len(rec.Payload) == 0 {
		return errRecord
	}
	e.live.Wrote(rec.At, len(rec.Payload))
	e.written.All += uint64(len(rec.Payload))
	e.tail = rec.At
	if r.first == 0 {
		r.first = rec.At
	}
	fields := machine.NewReader(rec.Payload[1:])
	in := &fields
	var err error
	switch kind := rec.Payload[0]; kind {
	case 0:
		return fmt.Errorf("%w: kind 0", errRecord)
	case kindBody:
		return nil
	case kindUnit:
		return r.unit(in)
	case kindSnapshotUnit:
		e.written.Snapshots += uint64(len(rec.Payload))
		return r.snapshotUnit(in)
	case kindSnapshotBegin:
		e.written.Snapshots += uint64(len(rec.Payload))
		r.begin(in, rec.At)
	case kindSnapshotPart:
		e.written.Snapshots += uint64(len(rec.Payload))
		if number := in.Uint(); number == r.loading && !r.loaded || r.Damaged() {
			e.snapshot.number = max(e.snapshot.number, number)
			err = e.host.ReplayPart(in, r)
		}
	case kindSnapshotEnd:
		number := in.Uint()
		r.loaded = r.loaded || number == r.loading
		r.snapshotOver()
		e.snapshot.number = max(e.snapshot.number, number)
	default:
		err = e.host.Replay(kind, in, r)
	}
	if err == nil && in.Bad() {
		err = errRecord
	}
	return err
}

// unit applies a record of a machine.
func (r *Recovery) unit(in *machine.Reader) error {
	id := in.Uint()
	u := r.e.units[id]
	if r.Partial() && (u == nil || !u.restored) {
		return nil // the snapshot will bring the unit as this left it
	}
	if r.Damaged() && u == nil {
		if u = r.undefined(id); u == nil {
			return nil
		}
		u.restored = true // no snapshot brings it
	}
	if r.Damaged() && !u.restored {
		return nil
	}
	if u == nil {
		return fmt.Errorf("%w: unit %d is not defined", journal.ErrCorrupt, id)
	}
	return r.replay(u, in)
}

// snapshotUnit applies a piece of a snapshot.
func (r *Recovery) snapshotUnit(in *machine.Reader) error {
	number, id := in.Uint(), in.Uint()
	u := r.e.units[id]
	if in.Bad() {
		return errRecord
	}
	if u == nil && r.Damaged() {
		u = r.undefined(id)
	}
	if u == nil {
		return nil // one that was dropped while its snapshot was written
	}
	u.restored = true
	if r.loading == 0 || number == r.loading || r.loaded {
		return r.replay(u, in)
	}
	return nil
}

func (r *Recovery) replay(u *Unit, in *machine.Reader) error {
	if in.Bad() {
		return errRecord
	}
	if err := u.Machine.Replay(in.Rest(), r.e.eff); err != nil {
		return err
	}
	r.e.account()
	return nil
}

func (r *Recovery) begin(in *machine.Reader, at journal.Position) {
	e := r.e
	number := in.Uint()
	e.snapshot.number = number
	mark := in.Uint()
	if at != r.first {
		if r.Damaged() && r.Partial() {
			r.loaded = true // the record that says so is missing
			r.snapshotOver()
		}
		return // a snapshot within the history: its beginning says nothing new
	}
	r.loading = number
	e.host.ReplayMark(mark)
	for range in.Uint() {
		b, written := in.Uint(), in.Uint()
		if in.Bad() {
			return
		}
		e.live.Restore(b, written)
	}
}

// finish checks that the history was whole and readies the units.
func (r *Recovery) finish() error {
	if r.Partial() && !r.Damaged() {
		return fmt.Errorf("%w: snapshot %d has no end", journal.ErrCorrupt, r.loading)
	}
	e := r.e
	for _, id := range slices.Sorted(maps.Keys(e.units)) {
		u := e.units[id]
		if m, ok := u.Machine.(machine.Tolerant); ok && r.Damaged() {
			m.EndReplay()
		}
		if !u.Machine.Restored() {
			return fmt.Errorf("%w: unit %d is not whole", journal.ErrCorrupt, id)
		}
		e.deadlines.set(u)
		e.resize(u)
	}
	maps.DeleteFunc(e.losses.Undefined, func(id uint64, _ int) bool { return e.units[id] != nil || r.gone[id] })
	// What was replayed is durable, whatever the journal has yet to say.
	e.durable = e.tail
	e.snapshot.began = r.first
	e.snapshot.freed = e.live.Freed
	e.now = time.Time{}
	for len(e.reserved.resized) > 0 {
		e.updateReserve()
	}
	return e.host.Recovered()
}
