// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// Open claims a shard of the journal and replays its history. The caller then
// calls Run, or Step by hand.
func Open(ctx context.Context, j journal.Journal, number journal.Shard, opts Options) (*Shard, error) {
	shards, err := OpenAll(ctx, j, []journal.Shard{number}, opts)
	if err != nil {
		return nil, err
	}
	return shards[0], nil
}

// OpenAll opens several shards in one pass over the journal, unless ctx ends before.
func OpenAll(ctx context.Context, j journal.Journal, numbers []journal.Shard, opts Options) ([]*Shard, error) {
	claims, records, err := j.Claim(ctx, numbers...)
	if err != nil {
		return nil, fmt.Errorf("claim %d shards: %w", len(numbers), err)
	}
	opts = opts.withDefaults() // once: all of them share a clock
	shards := make([]*Shard, len(claims))
	replayers := make(map[journal.Shard]*replayer, len(claims))
	for i, claim := range claims {
		shards[i] = newShard(ctx, j, claim, opts)
		replayers[claim.Shard] = &replayer{s: shards[i], brought: make(map[uint64]bool)}
	}
	for rec, err := range records {
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if err := replayers[rec.Shard].apply(rec); err != nil {
			return nil, fmt.Errorf("replay shard %d: record at %d: %w", rec.Shard, rec.At, err)
		}
	}
	for _, s := range shards {
		if err := replayers[s.claim.Shard].finish(); err != nil {
			return nil, fmt.Errorf("replay shard %d: %w", s.claim.Shard, err)
		}
		if err := s.monitorAll(); err != nil {
			return nil, fmt.Errorf("recover shard %d: %w", s.claim.Shard, err)
		}
		// The wall clock may have been set back since the last life.
		opts.Clock.AtLeast(s.latest())
		known := j.Status(s.claim)
		s.mail.report(journal.Status{Lease: known.Lease, Err: known.Err}) // the rest is news of the next commit
		j.Watch(s.claim, s.mail.report)
	}
	return shards, nil
}

// latest returns the latest time at which anything was stored.
func (s *Shard) latest() time.Time {
	var at time.Time
	for _, e := range s.entities {
		for _, sl := range e.parts {
			if t := sl.q.Latest(); t.After(at) {
				at = t
			}
		}
	}
	return at
}

func newShard(ctx context.Context, j journal.Journal, claim journal.Claim, opts Options) *Shard {
	s := &Shard{
		opts:     opts,
		journal:  j,
		claim:    claim,
		mail:     newMailbox(opts.Mailbox),
		entities: make(map[ID]*entity),
		nextID:   1,
		cache:    newCache(opts.CacheBytes),
		live:     newLiveness(claim),

		groupLimit: min(claim.MaxGroup/4, 1<<20),
	}
	if s.opts.Go == nil {
		s.opts.Go = func(_ journal.Shard, work func()) { s.work.Go(work) }
	}
	s.loadCtx = context.WithoutCancel(ctx)
	s.ctx, s.cancel = context.WithCancel(s.loadCtx)
	s.inHand = func(ref queue.Ref) bool { return s.cache.get(ref) != nil }
	return s
}

// replayer brings a shard back from its records.
type replayer struct {
	s *Shard
	// loading is the number of the snapshot that the history begins with; zero
	// if it begins with nothing. Pieces of any other snapshot only repeat what
	// is known, but for the bodies they moved.
	loading uint64
	// loaded says that the end of that snapshot has come.
	loaded bool
	// brought are the queues, by their slot, that the snapshot has begun to
	// bring or that were defined after it began. Until it ends, records of
	// other queues are about what it will show.
	brought map[uint64]bool
	first   journal.Position
}

func (r *replayer) apply(rec journal.Record) error {
	s := r.s
	if len(rec.Payload) == 0 {
		return errRecord
	}
	s.live.wrote(rec.At, len(rec.Payload))
	s.written.all += uint64(len(rec.Payload))
	s.tail = rec.At
	if r.first == 0 {
		r.first = rec.At
	}
	kind := rec.Payload[0]
	if kind == kindBody {
		return nil
	}
	fields := machine.NewReader(rec.Payload[1:])
	in := &fields
	id := in.Uint()
	switch kind {
	case kindQueue:
		return r.queue(id, in)
	case kindSnapshotQueue:
		s.written.snapshots += uint64(len(rec.Payload))
		return r.snapshotQueue(id, in)
	case kindDefine:
		def := readDefinition(in, ID(id))
		if !in.Bad() {
			for _, sl := range s.newEntity(def).parts {
				r.brought[sl.id] = true
			}
		}
	case kindRedefine:
		if e, ok := s.entities[ID(id)]; ok {
			e.Meta = append([]byte(nil), in.Bytes()...)
		} else if !r.partial() {
			return fmt.Errorf("%w: entity %d is not defined", journal.ErrCorrupt, id)
		}
	case kindDrop:
		if e, ok := s.entities[ID(id)]; ok {
			for _, sl := range e.parts {
				machine.AllRefs(sl.q, s.live.free)
			}
			s.forget(e)
		}
	case kindPublished:
		if e, ok := s.entities[ID(id)]; ok {
			e.Published = in.Uint()
		}
	case kindNote:
		if e, ok := s.entities[ID(id)]; ok {
			e.Note = append([]byte(nil), in.Bytes()...)
		}
	case kindSnapshotBegin:
		s.written.snapshots += uint64(len(rec.Payload))
		r.begin(id, in, rec.At)
	case kindSnapshotPart:
		s.written.snapshots += uint64(len(rec.Payload))
		r.part(id, in)
	case kindSnapshotEnd:
		r.loaded = r.loaded || id == r.loading
		s.snapshot.number = max(s.snapshot.number, id)
	default:
		return fmt.Errorf("%w: unknown kind %d", errRecord, kind)
	}
	return bad(in)
}

// bad returns an error if a record was cut short.
func bad(in *machine.Reader) error {
	if in.Bad() {
		return errRecord
	}
	return nil
}

// partial reports whether entities may be missing because the snapshot has not
// brought them yet.
func (r *replayer) partial() bool { return r.loading != 0 && !r.loaded }

func (r *replayer) queue(id uint64, in *machine.Reader) error {
	sl := r.find(id)
	if r.partial() && !r.brought[id] {
		return nil // the snapshot will bring the queue as this left it
	}
	if sl == nil {
		return fmt.Errorf("%w: queue %d is not defined", journal.ErrCorrupt, id)
	}
	if in.Bad() {
		return errRecord
	}
	return r.replay(sl, in.Rest())
}

func (r *replayer) snapshotQueue(number uint64, in *machine.Reader) error {
	id := in.Uint()
	sl := r.find(id)
	if in.Bad() || sl == nil {
		return bad(in) // an entity that was dropped while its snapshot was written
	}
	r.brought[id] = true
	if r.loading == 0 || number == r.loading || r.loaded {
		return r.replay(sl, in.Rest())
	}
	return nil
}

func (r *replayer) replay(sl *slot, rec []byte) error {
	s := r.s
	if err := sl.q.Replay(rec, &s.eff.Effects); err != nil {
		return err
	}
	s.account()
	return nil
}

func (r *replayer) find(id uint64) *slot {
	e, ok := r.s.entities[ID(id/parts)]
	if !ok || id%parts >= uint64(len(e.parts)) {
		return nil
	}
	return e.parts[id%parts]
}

func (r *replayer) begin(number uint64, in *machine.Reader, at journal.Position) {
	s := r.s
	s.snapshot.number = number
	next := ID(in.Uint())
	if at != r.first {
		return // a snapshot within the history: its beginning says nothing new
	}
	r.loading = number
	s.nextID = max(s.nextID, next)
	for range in.Uint() {
		b, written := in.Uint(), in.Uint()
		if in.Bad() {
			return
		}
		s.live.restore(b, written)
	}
}

func (r *replayer) part(number uint64, in *machine.Reader) {
	id := ID(in.Uint())
	published := in.Uint()
	def := readDefinition(in, id)
	def.Published = published
	if !in.Bad() && number == r.loading && !r.loaded {
		r.s.newEntity(def)
	}
}

// finish checks that the history was whole and readies the slots.
func (r *replayer) finish() error {
	if r.partial() {
		return fmt.Errorf("%w: snapshot %d has no end", journal.ErrCorrupt, r.loading)
	}
	s := r.s
	for _, e := range s.sorted() {
		for _, sl := range e.parts {
			if !sl.q.Restored() {
				return fmt.Errorf("%w: a queue of %q is not whole", journal.ErrCorrupt, e.Name)
			}
			s.deadlines.set(sl)
			s.touch(sl)
			s.resize(sl)
			sl.last = sl.q.Last()
			sl.safe = sl.last
		}
	}
	// What was replayed is durable, whatever the journal has yet to say.
	s.durable = s.tail
	s.snapshot.began = r.first
	s.snapshot.freed = s.live.freed
	s.now = time.Time{}
	s.reserve()
	return nil
}
