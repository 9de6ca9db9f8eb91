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
		opts.Clock.AtLeast(e.latest())
		known := j.Status(e.claim)
		e.mail.report(journal.Status{Lease: known.Lease, Err: known.Err}) // the rest is news of the next commit
		j.Watch(e.claim, e.mail.report)
	}
	return engines, nil
}

// latest returns the latest time at which anything was stored.
func (e *Engine) latest() time.Time {
	var at time.Time
	for _, u := range e.units {
		if t := u.Machine.Latest(); t.After(at) {
			at = t
		}
	}
	return at
}

func newEngine(ctx context.Context, j journal.Journal, claim journal.Claim, opts Options, host func(*Engine, *Tx) Host) *Engine {
	e := &Engine{
		opts:       opts,
		journal:    j,
		claim:      claim,
		mail:       newMailbox(opts.Mailbox),
		units:      make(map[uint64]*Unit),
		live:       retention.NewLiveness(claim),
		groupLimit: min(claim.MaxGroup/4, 1<<20),
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
}

// Add adds a unit that did not exist before: a record has defined it.
func (r *Recovery) Add(u *Unit) {
	u.restored = true
	r.e.add(u)
}

// AddPart adds a unit that the snapshot has. Until it has begun to bring it, records of
// the unit are about what it will show.
func (r *Recovery) AddPart(u *Unit) { r.e.add(u) }

// Drop forgets units.
func (r *Recovery) Drop(us []*Unit) {
	for _, u := range us {
		machine.AllRefs(u.Machine, r.e.live.Free)
	}
	r.e.forget(us)
}

// Partial reports whether units may be missing because the snapshot has not
// brought them yet.
func (r *Recovery) Partial() bool { return r.loading != 0 && !r.loaded }

func (r *Recovery) apply(rec journal.Record) error {
	e := r.e
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
		if number := in.Uint(); number == r.loading && !r.loaded {
			err = e.host.ReplayPart(in, r)
		}
	case kindSnapshotEnd:
		number := in.Uint()
		r.loaded = r.loaded || number == r.loading
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
	if u == nil {
		return fmt.Errorf("%w: unit %d is not defined", journal.ErrCorrupt, id)
	}
	return r.replay(u, in)
}

// snapshotUnit applies a piece of a snapshot.
func (r *Recovery) snapshotUnit(in *machine.Reader) error {
	number, id := in.Uint(), in.Uint()
	u := r.e.units[id]
	if u == nil || in.Bad() {
		if in.Bad() {
			return errRecord
		}
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
	if r.Partial() {
		return fmt.Errorf("%w: snapshot %d has no end", journal.ErrCorrupt, r.loading)
	}
	e := r.e
	for _, id := range slices.Sorted(maps.Keys(e.units)) {
		u := e.units[id]
		if !u.Machine.Restored() {
			return fmt.Errorf("%w: unit %d is not whole", journal.ErrCorrupt, id)
		}
		e.deadlines.set(u)
		e.resize(u)
	}
	// What was replayed is durable, whatever the journal has yet to say.
	e.durable = e.tail
	e.snapshot.began = r.first
	e.snapshot.freed = e.live.Freed
	e.now = time.Time{}
	e.reserve()
	return e.host.Recovered()
}
