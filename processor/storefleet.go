// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

// storeFleet shares partitions by the rules of the SDKs for Event Hubs: each instance looks
// at the records of all, renews its own, and claims what it lacks.
type storeFleet struct {
	run   *run
	store CheckpointStore
	scope Scope

	sem chan struct{} // capacity 1: full while records are read and written

	mu      sync.Mutex
	turns   int64
	held    map[string]*holding // guarded by mu
	rests   map[string]time.Time
	writers map[string]chan struct{} // by partition, each of capacity 1; guarded by mu
	leaving bool
	seen    map[string]sighting // guarded by sem
	hub     int
	rounds  int
	good    time.Time     // when the store answered last; owned by next
	back    time.Time     // when it answered again after a long time; owned by next
	wakeup  chan struct{} // capacity 1: look sooner
}

// holding is a partition that this instance owns.
type holding struct {
	record Ownership
	grant  grant
	gone   bool // its reader was ended: it starts anew, if the record is still ours
}

// sighting is when a record was first seen as it is.
type sighting struct {
	etag string
	at   time.Time
}

func newStoreFleet(r *run) *storeFleet {
	s := &r.settings
	return &storeFleet{
		run: r, store: r.processor.Store, scope: Scope{Namespace: s.namespace, Hub: s.hub, Group: s.group},
		sem: make(chan struct{}, 1), held: map[string]*holding{}, rests: map[string]time.Time{}, writers: map[string]chan struct{}{},
		seen: map[string]sighting{}, wakeup: make(chan struct{}, 1),
	}
}

// next waits for the next round and returns what it left this instance with.
func (f *storeFleet) next(ctx context.Context) (view, error) {
	f.rounds++
	if f.rounds > 1 {
		wait := time.Duration(float64(f.run.settings.interval) * (0.8 + 0.5*rand.Float64()))
		select {
		case <-time.After(wait):
		case <-f.wakeup:
		case <-ctx.Done():
			return view{}, context.Cause(ctx)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, f.run.settings.expiry)
	defer cancel()
	if err := f.round(ctx); err != nil {
		// What we hold stays ours: who takes it ends our readers.
		return view{}, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return f.view(), nil
}

// answered notes that the store has answered, and whether it was silent for long before.
func (f *storeFleet) answered() {
	now := time.Now()
	if !f.good.IsZero() && now.Sub(f.good) > f.run.settings.expiry/2 {
		f.back = now
	}
	f.good = now
}

func (f *storeFleet) view() view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{hub: f.hub}
	for _, h := range f.held {
		if !h.gone {
			v.grants = append(v.grants, h.grant)
		}
	}
	return v
}

// round looks at the records, claims, and notes what is ours.
func (f *storeFleet) round(ctx context.Context) error {
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	f.mu.Lock()
	leaving := f.leaving
	f.mu.Unlock()
	if leaving {
		return nil
	}
	partitions, err := f.run.link.partitions(ctx)
	if err != nil {
		return err
	}
	records, now, err := f.store.ListOwnership(ctx, f.scope)
	if err != nil {
		return fmt.Errorf("list ownership: %w", err)
	}
	f.answered()
	t := f.table(partitions, records, now)
	claims := t.claims(f.run.processor.Strategy)
	won, err := f.store.ClaimOwnership(ctx, claims)
	if err != nil && len(won) == 0 {
		return fmt.Errorf("claim: %w", err)
	}
	if err != nil { // of one record, which must not keep the others from being worked on
		f.run.tell(fmt.Errorf("%w: claim: %w", ErrStore, err))
	}
	return f.note(ctx, len(partitions), claims, won, err == nil)
}

func (f *storeFleet) lock(ctx context.Context) error {
	select {
	case f.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *storeFleet) unlock() { <-f.sem }

// table sorts the records into ours, others' and free ones.
func (f *storeFleet) table(partitions []string, records []Ownership, now time.Time) *table {
	t := &table{self: f.run.settings.id, parts: len(partitions), owners: map[string][]Ownership{}}
	known := map[string]Ownership{}
	for _, r := range records {
		known[r.Partition] = r
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range partitions {
		r, ok := known[name]
		if !ok {
			r = Ownership{Scope: f.scope, Partition: name}
		}
		_, mine := f.held[name]
		switch {
		case r.Owner == t.self:
			// Also one of an earlier life with the same ID, and one whose ETag we never got.
			t.owners[t.self] = append(t.owners[t.self], r)
		case r.Owner != "" && !f.expired(r, now):
			t.owners[r.Owner] = append(t.owners[r.Owner], r)
		case !mine && time.Now().Before(f.rests[name]):
			t.resting++
		default:
			t.free = append(t.free, r)
		}
	}
	return t
}

// expired reports whether nobody has renewed a record for too long. Its time and now are by
// the store's clock. A store without one is watched: what does not change is not renewed.
func (f *storeFleet) expired(r Ownership, now time.Time) bool {
	if !f.back.IsZero() && time.Since(f.back) < f.run.settings.expiry {
		return false // perhaps nobody could renew it
	}
	if !now.IsZero() && !r.Modified.IsZero() {
		return now.Sub(r.Modified) > f.run.settings.expiry
	}
	s, ok := f.seen[r.Partition]
	if !ok || s.etag != r.ETag {
		f.seen[r.Partition] = sighting{r.ETag, time.Now()}
		return false
	}
	return time.Since(s.at) > f.run.settings.expiry
}

// note brings held in line with the claims that were won.
func (f *storeFleet) note(ctx context.Context, hub int, claims, won []Ownership, complete bool) error {
	ours := map[string]Ownership{}
	for _, o := range won {
		ours[o.Partition] = o
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hub = hub
	var fresh []string
	for name, o := range ours {
		if h := f.held[name]; h == nil || h.gone {
			fresh = append(fresh, name)
		} else {
			h.record = o
		}
	}
	if complete {
		for name := range f.held {
			if _, ok := ours[name]; !ok {
				delete(f.held, name) // another has claimed it
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	f.mu.Unlock()
	checkpoints, err := f.checkpoints(ctx)
	f.mu.Lock()
	if err != nil {
		f.run.tell(fmt.Errorf("%w: list checkpoints: %w", ErrStore, err))
	}
	for _, name := range fresh {
		after, ok := checkpoints[name]
		switch {
		case ok:
		case err != nil:
			continue // the record is ours, and the next round begins with the partition
		default:
			after = none
		}
		f.turns++
		f.held[name] = &holding{record: ours[name], grant: grant{partition: name, turn: f.turns, after: after}}
	}
	return nil
}

func (f *storeFleet) checkpoints(ctx context.Context) (map[string]client.SeqNo, error) {
	list, err := f.store.ListCheckpoints(ctx, f.scope)
	out := map[string]client.SeqNo{}
	for _, c := range list {
		out[c.Partition] = c.SeqNo
		if c.SeqNo < 0 {
			out[c.Partition] = oldest // the store does not tell a rewind to the oldest event from an empty partition
		}
	}
	return out, err
}

// checkpoint saves positions one by one, as the stores of the SDKs do.
func (f *storeFleet) checkpoint(ctx context.Context, ms []mark) ([]error, error) {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = f.save(ctx, m)
	}
	if err := errors.Join(errs...); err != nil && len(ms) > 1 && !errors.Is(err, ErrLost) {
		return nil, err // tell it once
	}
	return errs, nil
}

func (f *storeFleet) save(ctx context.Context, m mark) error {
	done, err := f.writes(ctx, m.grant.partition)
	if err != nil {
		return err
	}
	defer done()
	f.mu.Lock()
	h := f.held[m.grant.partition]
	ours := h != nil && h.grant.turn == m.grant.turn && !h.gone
	f.mu.Unlock()
	if !ours {
		return fmt.Errorf("%w: partition %s", ErrLost, m.grant.partition)
	}
	if err := f.set(ctx, m.grant.partition, max(m.seqNo, none)); err != nil {
		return fmt.Errorf("%w: checkpoint: %w", ErrStore, err)
	}
	return nil
}

// writes waits until nobody else here writes the checkpoint of a partition: a save that
// began before a rewind must not undo it.
func (f *storeFleet) writes(ctx context.Context, partition string) (done func(), err error) {
	f.mu.Lock()
	sem := f.writers[partition]
	if sem == nil {
		sem = make(chan struct{}, 1)
		f.writers[partition] = sem
	}
	f.mu.Unlock()
	select {
	case sem <- struct{}{}:
		return func() { <-sem }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (f *storeFleet) set(ctx context.Context, partition string, n client.SeqNo) error {
	return f.store.SetCheckpoint(ctx, Checkpoint{Scope: f.scope, Partition: partition, SeqNo: n, Offset: strconv.FormatInt(int64(n), 10)})
}

func (f *storeFleet) release(ctx context.Context, g grant, coolDown time.Duration) error {
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	f.mu.Lock()
	h := f.held[g.partition]
	if h == nil || h.grant.turn != g.turn {
		f.mu.Unlock()
		return fmt.Errorf("%w: partition %s", ErrLost, g.partition)
	}
	delete(f.held, g.partition)
	if coolDown > 0 {
		f.rests[g.partition] = time.Now().Add(coolDown)
	}
	record := h.record
	f.mu.Unlock()
	record.Owner = ""
	if _, err := f.store.ClaimOwnership(ctx, []Ownership{record}); err != nil {
		return fmt.Errorf("%w: release: %w", ErrStore, err)
	}
	return nil
}

// stolen notes that another has opened a reader. If the record is still ours in the next
// round, the partition starts anew.
func (f *storeFleet) stolen(g grant) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.held[g.partition]; h != nil && h.grant.turn == g.turn {
		h.gone = true
	}
	return false
}

// rewind starts a partition of this instance anew, at a position.
func (f *storeFleet) rewind(ctx context.Context, partition string, to Position) error {
	done, err := f.writes(ctx, partition)
	if err != nil {
		return err
	}
	defer done()
	f.mu.Lock()
	h := f.held[partition]
	f.mu.Unlock()
	if h == nil {
		return ErrNotOwned
	}
	n := none
	switch to.kind {
	case bySequence:
		n, err = to.after, f.set(ctx, partition, to.after)
	case earliest:
		err = f.set(ctx, partition, none)
	case latest:
		if n, err = f.run.link.last(ctx, partition); err == nil {
			err = f.set(ctx, partition, n)
		}
		to = behind(n) // the end is another one when the handler in hand has ended
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.turns++
	h.grant.turn, h.grant.after, h.grant.rewound = f.turns, n, &to
	f.mu.Unlock()
	signal(f.wakeup)
	return nil
}

func (f *storeFleet) leave(context.Context) error {
	f.mu.Lock()
	f.leaving = true
	f.mu.Unlock()
	return nil
}

// report does nothing: the records are renewed in each round.
func (f *storeFleet) report(context.Context, []report) (uint64, error) { return 0, nil }
func (f *storeFleet) close() error                                     { return nil }

// silence is no matter: the broker ends the readers of who has lost a partition.
func (f *storeFleet) silence() time.Duration { return 0 }
