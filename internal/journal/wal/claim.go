// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// Claim implements journal.Journal. What the claim before has appended, and not
// yet committed, is committed first, so that the new owner finds it.
func (w *WAL) Claim(ctx context.Context, numbers ...journal.Shard) ([]journal.Claim, iter.Seq2[journal.Record, error], error) {
	if slices.ContainsFunc(numbers, func(n journal.Shard) bool { return n >= format.OwnShard }) {
		return nil, nil, fmt.Errorf("wal: shards from %d on are reserved", format.OwnShard)
	}
	type claimed struct {
		claims []journal.Claim
		froms  map[journal.Shard]journal.Position
		end    journal.Position
	}
	c, err := await(ctx, func() (c claimed, err error) {
		err = w.withManifest(ctx, func() error {
			c.claims, c.froms, c.end, err = w.claim(numbers)
			return err
		})
		return c, err
	})
	if err != nil {
		return nil, nil, err
	}
	return c.claims, w.replay(ctx, c.froms, c.end), nil
}

// await returns what work returns, unless ctx ends first: work then goes on alone,
// because a call to the disk cannot be called off.
func await[T any](ctx context.Context, work func() (T, error)) (T, error) {
	if ctx.Done() == nil {
		return work()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := work()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// withManifest runs work with the manifest token, unless ctx ends before it can.
func (w *WAL) withManifest(ctx context.Context, work func() error) error {
	select {
	case w.manifestToken <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.manifestToken }()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return work()
}

// claim begins new claims of shards and returns, with them, what is to be replayed:
// where each begins, and where all of them end. The manifest token is held.
func (w *WAL) claim(numbers []journal.Shard) ([]journal.Claim, map[journal.Shard]journal.Position, journal.Position, error) {
	shards, err := w.fence(numbers)
	if err != nil {
		return nil, nil, 0, err
	}
	if err := w.flush(); err != nil {
		return nil, nil, 0, err
	}
	w.mu.Lock()
	claims := make([]journal.Claim, len(shards))
	froms := make(map[journal.Shard]journal.Position, len(shards))
	for i, s := range shards {
		if s.From == 0 {
			// Not the place of the next append: a crash may lose what is pending
			// before it, and then its own records would come to lie before From.
			s.From = w.log.synced
		}
		froms[s.number] = s.From
		claims[i] = journal.Claim{Shard: s.number, Epoch: s.Epoch, SegmentSize: w.segmentSize, MaxGroup: w.maxGroup()}
	}
	end := w.log.synced
	m := w.manifest()
	w.mu.Unlock()
	return claims, froms, end, w.publish(m)
}

// maxGroup returns what Claim.MaxGroup promises: whatever the number of records,
// they fit.
func (w *WAL) maxGroup() int { return int(w.largest()) - format.HeaderSize }

// fence begins a new epoch of shards: from here on the former owners are refused.
func (w *WAL) fence(numbers []journal.Shard) ([]*shard, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return nil, err
	}
	shards := make([]*shard, len(numbers))
	for i, number := range numbers {
		s := w.shards[number]
		if s == nil {
			s = &shard{number: number}
			w.shards[number] = s
		}
		w.end(s)
		s.Epoch++
		s.released = false
		shards[i] = s
	}
	return shards, nil
}

// end ends the claim of a shard, if it has one; mu is held. Its watcher is called with
// the next commit.
func (w *WAL) end(s *shard) {
	if s.watch != nil {
		w.ended = append(w.ended, s.watch)
		s.watch = nil
		w.wake.Notify()
	}
	w.reserveFor(s, journal.Reservation{})
}

// Release implements journal.Journal.
func (w *WAL) Release(ctx context.Context, c journal.Claim) error {
	w.mu.Lock()
	s, err := w.owner(c)
	if err == nil {
		s.released = true
		w.end(s)
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = await(ctx, func() (struct{}, error) { return struct{}{}, w.flush() })
	return err
}

// Status implements journal.Journal.
func (w *WAL) Status(c journal.Claim) journal.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	st := w.status
	if _, err := w.owner(c); err != nil {
		st.Err = err
	}
	return st
}

// Watch implements journal.Journal. The first status comes with the next commit.
func (w *WAL) Watch(c journal.Claim, fn func(journal.Status)) {
	w.mu.Lock()
	if s := w.shards[c.Shard]; s == nil || s.Epoch != c.Epoch || s.released {
		w.ended = append(w.ended, fn)
	} else {
		s.watch, s.lastStatus = fn, journal.Status{}
		at, found := slices.BinarySearchFunc(w.watched, s, func(a, b *shard) int {
			return cmp.Compare(a.number, b.number)
		})
		if !found {
			w.watched = slices.Insert(w.watched, at, s)
		}
	}
	w.mu.Unlock()
	w.wake.Notify()
}

// Truncate implements journal.Journal. It commits what is pending before
// r.From: what replaces the past must be safe before the past is dropped.
func (w *WAL) Truncate(ctx context.Context, c journal.Claim, r journal.Retain) error {
	r.Segments = slices.Clone(r.Segments)
	_, err := await(ctx, func() (struct{}, error) {
		return struct{}{}, w.withManifest(ctx, func() error { return w.truncate(c, r) })
	})
	return err
}

// truncate is Truncate with the manifest token.
func (w *WAL) truncate(c journal.Claim, r journal.Retain) error {
	w.mu.Lock()
	s, err := w.owner(c)
	safe := r.From <= w.log.synced
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if !safe {
		if err := w.flush(); err != nil {
			return err
		}
	}

	w.mu.Lock()
	old := s.ShardManifest
	if _, err = w.owner(c); err == nil { // it may have been released meanwhile
		err = w.checkRetain(s, r)
	}
	if err == nil {
		s.From, s.Segments = r.From, r.Segments
	}
	m := w.manifest()
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if err := w.publish(m); err != nil {
		w.mu.Lock()
		s.From, s.Segments = old.From, old.Segments
		w.mu.Unlock()
		return err
	}
	return w.free(m)
}

// checkRetain refuses to retain what is not there: a store whose manifest lists
// it would not open again. mu is held.
func (w *WAL) checkRetain(s *shard, r journal.Retain) error {
	if r.From < s.From || r.From > w.log.synced {
		return fmt.Errorf("wal: retain from %d: not between %d and %d", r.From, s.From, w.log.synced)
	}
	from := uint64(r.From) / w.segmentSize
	for i, b := range r.Segments {
		if i > 0 && b <= r.Segments[i-1] || b > from {
			return fmt.Errorf("wal: retain segment %d: not in order before segment %d", b, from)
		}
		if w.segs[b] == nil {
			return fmt.Errorf("wal: retain segment %d: %w", b, journal.ErrFreed)
		}
	}
	return nil
}

// manifest returns what is to be written; mu is held. The last segment with a
// batch is always kept, since the numbering goes on from it: see needs.
func (w *WAL) manifest() *format.Manifest {
	m := &format.Manifest{SegmentSize: w.segmentSize, Synced: w.log.synced, Shards: make(map[journal.Shard]*format.ShardManifest)}
	for n, s := range w.shards {
		if s.From != 0 { // a first claim that failed has none
			kept := s.ShardManifest // its Segments are never changed in place
			m.Shards[n] = &kept
		}
	}
	return m
}

// publish makes m durable, first in the log and then in the files of the manifest.
// Until it returns nothing may be done that relies on it.
func (w *WAL) publish(m *format.Manifest) error {
	m.Generation = w.generation + 1 // as writeManifest will number it
	if err := w.logManifest(m); err != nil {
		return err
	}
	return w.writeManifest(m)
}

// logManifest appends m to the log, as a record of its own, and commits it. That
// record is needed only if both files are lost, and then it is all that is: since
// it lies behind everything that it keeps, the segment it is in is kept too, and
// since it is written first nothing has been freed that the last one in the log
// needs. On a full disk it may use half of the base of the reserve; beyond that it
// gets a quarter, at most, of what is left in the active segment, and otherwise is
// left out until the next time.
func (w *WAL) logManifest(m *format.Manifest) error {
	b, err := m.EncodeCompact()
	if err != nil {
		return err
	}
	size := format.FrameSize(len(b))
	if uint64(size) > w.largest() {
		return nil
	}
	ok, err := w.appendOwn(b, size)
	if err == nil && ok {
		err = w.flush()
	}
	w.mu.Lock()
	m.Synced = w.log.synced
	w.mu.Unlock()
	return err
}

// appendOwn appends a record of the log's own, for upkeep, and reports whether
// there was space.
func (w *WAL) appendOwn(b []byte, size int) (bool, error) {
	need := uint64(size) + format.BatchHeader
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.usable(); err != nil {
			return false, err
		}
		if w.status.Full && w.log.free() < 4*need && w.available() < w.pool.target-w.pool.base/2+need {
			return false, nil // what is left is for the owners
		}
		if w.fit(need) {
			break
		}
		w.mu.Unlock()
		err := w.ensureReady(need)
		w.mu.Lock()
		if errors.Is(err, journal.ErrFull) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	var at [1]journal.Position
	w.put(journal.Claim{Shard: format.OwnShard}, [][]byte{b}, at[:], size)
	return true, nil
}

// writeManifest writes the manifest to its files. If it has outgrown them, on a full
// disk, spares are given up for it. A full disk may be tried again; any other
// failure is final.
func (w *WAL) writeManifest(m *format.Manifest) error {
	for {
		err := w.writeManifestOnce(m)
		if !errors.Is(err, journal.ErrFull) || !w.giveUpSpare() {
			return err
		}
	}
}

// writeManifestOnce is writeManifest without giving up anything.
func (w *WAL) writeManifestOnce(m *format.Manifest) error {
	w.generation++
	m.Generation = w.generation
	err := w.copies.Write(m)
	switch {
	case err == nil:
		w.marked = m.Synced
		return nil
	case errors.Is(err, vfs.ErrNoSpace):
		return fmt.Errorf("%w: %w", journal.ErrFull, err)
	}
	return w.fail(err)
}

// free gives up the segments that m, which is durable, does not need.
func (w *WAL) free(m *format.Manifest) error {
	from, kept := m.Needs()
	var freed []*store.Segment
	w.mu.Lock()
	for n, seg := range w.segs {
		if n < from && !kept[n] {
			seg.Gone.Store(true) // before anything can be written over it
			delete(w.segs, n)
			freed = append(freed, seg)
		}
	}
	w.mu.Unlock()
	if len(freed) == 0 {
		return nil
	}
	slices.SortFunc(freed, func(a, b *store.Segment) int { return cmp.Compare(a.Number, b.Number) })
	for _, seg := range freed {
		if err := w.recycleSegment(seg); err != nil {
			return w.fail(err)
		}
	}
	if err := w.fs.SyncDir("."); err != nil {
		return w.fail(err)
	}
	w.low.Notify()
	return nil
}

// recycleSegment makes a spare of a segment, or removes it.
func (w *WAL) recycleSegment(seg *store.Segment) error {
	size, err := seg.File.Size()
	if err != nil {
		return err
	}
	w.mu.Lock()
	keep := w.keepable(uint64(size))
	w.mu.Unlock()
	if !keep {
		return errors.Join(w.fs.Remove(seg.Name), seg.File.Close())
	}
	p := &store.Spare{Name: store.SpareName(w.spareID.Add(1)), Size: uint64(size)}
	err = w.fs.Rename(seg.Name, p.Name)
	if passes(err) { // the directory has no space for the name
		return errors.Join(w.fs.Remove(seg.Name), seg.File.Close())
	}
	if err != nil {
		return err
	}
	p.File = store.Named(seg.File, p.Name)
	w.putSpare(p)
	return nil
}

// replay yields the records of shards between where each begins and end, in one
// pass over the log.
func (w *WAL) replay(ctx context.Context, froms map[journal.Shard]journal.Position, end journal.Position) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if len(froms) == 0 {
			return
		}
		first := slices.Min(slices.Collect(maps.Values(froms)))
		for rec, err := range w.records(first, end) {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(journal.Record{}, err)
				return
			}
			if rec.Shard == format.TombstoneShard {
				if !yieldLost(&rec, froms, yield) {
					return
				}
				continue
			}
			from, wanted := froms[rec.Shard]
			if wanted && rec.At >= from && !yield(journal.Record{Shard: rec.Shard, At: rec.At, Payload: rec.Payload}, nil) {
				return
			}
		}
	}
}

// yieldLost tells the shards that a tombstone represents records which may be theirs.
func yieldLost(rec *store.Located, froms map[journal.Shard]journal.Position, yield func(journal.Record, error) bool) bool {
	for _, n := range slices.Sorted(maps.Keys(froms)) {
		if rec.DroppedFrom(froms[n]) && !yield(journal.Record{Shard: n, At: rec.At, Lost: max(rec.Records(), 1)}, nil) {
			return false
		}
	}
	return true
}

// Shards returns how many shards the store has: one more than the highest number
// ever claimed. An owner that opened fewer would leave some of its history out.
func (w *WAL) Shards() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for number := range w.shards {
		n = max(n, int(number)+1)
	}
	return n
}
