// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
)

var seeds = flag.Uint64("seeds", 200, "how many random schedules the models run, half of them in each mode")

// model is a fleet whose instances join, leave, crash and are suspended, whose handlers hang at
// times, and whose events expire. It watches that each partition has one handler at a time but
// for one that has timed out, that checkpoints cover only what was handled or is gone, that
// gaps are told, and that events are handled twice only where a host was disturbed.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	hub   *fakeHub
	store *faultyStore // nil: the broker coordinates
	names int
	all   []*instance // ever

	replaced []*instance // by younger runs with their IDs

	mu        sync.Mutex
	instances []*instance                  // those that run; guarded by mu
	active    []*instance                  // who handles each partition now; guarded by mu
	by        []map[client.SeqNo]*instance // who handled each event last; guarded by mu
	marks     []client.SeqNo               // the checkpoint of each partition; guarded by mu
	hung      []*instance                  // whose handler of each partition hangs; guarded by mu
	told      []map[client.SeqNo]bool      // events of gaps that OnError heard of; guarded by mu
	unasked   []client.SeqNo               // events before it were gone when there was no checkpoint; guarded by mu
	calm      bool                         // handlers do not begin to hang; guarded by mu
	twice     int                          // guarded by mu
	planned   int                          // duplicates that no disturbance explains; guarded by mu
	faults    []string                     // guarded by mu
}

type instance struct {
	*Processor
	name   string
	host   *host
	cancel context.CancelFunc
	ended  chan error

	disturbed bool      // guarded by the model's mu
	replaced  time.Time // when a younger run has joined with its ID; guarded by the model's mu
}

func newModel(t *testing.T, seed uint64, withStore bool) *model {
	rng := rand.New(rand.NewPCG(seed, 15))
	parts := 1 + rng.IntN(12)
	m := &model{t: t, rng: rng, hub: newFakeHub(parts)}
	m.grow(parts)
	if withStore {
		m.store = &faultyStore{CheckpointStore: NewMemoryStore(), rng: rand.New(rand.NewPCG(seed, 16)), skew: time.Duration(rng.IntN(20)-10) * time.Minute, blind: rng.IntN(3) == 0, saved: m.saved}
	} else {
		m.hub.coordinate().accepted = m.saved
	}
	return m
}

func (m *model) grow(parts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.by) < parts {
		m.by = append(m.by, map[client.SeqNo]*instance{})
		m.marks = append(m.marks, none)
		m.active, m.hung = append(m.active, nil), append(m.hung, nil)
		m.told, m.unasked = append(m.told, map[client.SeqNo]bool{}), append(m.unasked, 0)
	}
}

func (m *model) faultf(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// saved checks a checkpoint that was accepted.
func (m *model) saved(part int, n client.SeqNo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < m.marks[part] && m.store == nil {
		m.faultf("checkpoint of partition %d goes back from %d to %d", part, m.marks[part], n)
	}
	for e := m.marks[part] + 1; e <= n; e++ {
		if m.by[part][e] == nil && !m.isDead(part, e) && e >= m.hub.first(part) {
			m.faultf("checkpoint %d of partition %d, but event %d was not handled", n, part, e)
			break
		}
	}
	m.marks[part] = n
}

func (m *model) start() { m.startAs("") }

// startAs starts an instance with an ID; "" is one of its own.
func (m *model) startAs(id string) {
	m.names++
	i := &instance{name: fmt.Sprint("instance", m.names), host: m.hub.host(), ended: make(chan error, 1)}
	i.Processor = &Processor{
		Hub: "hub", Group: fakeGroup, ID: cmp.Or(id, i.name), link: i.host, Log: slog.New(slog.DiscardHandler), OnError: m.hear, Timeout: handlerTimeout,
		Batch: 1 + m.rng.IntN(10), Attempts: 2, DeadLetter: "dead",
		Checkpoint: []CheckpointPolicy{EveryBatch(), EveryEvent(), EveryN(7), Every(300 * time.Millisecond)}[m.rng.IntN(4)],
	}
	if i.Checkpoint == EveryEvent() {
		i.Batch = 1
	}
	if m.store != nil {
		i.Store, i.Interval, i.Strategy = m.store, 2*time.Second, Strategy(m.rng.IntN(2))
	}
	slow := rand.New(rand.NewPCG(uint64(m.names), 17))
	i.Handle = func(ctx context.Context, p *Partition, events []*client.Received) error {
		return m.handle(ctx, i, slow, p, events)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	i.cancel = cancel
	m.all = append(m.all, i)
	go func() { i.ended <- i.Run(ctx) }()
	m.mu.Lock()
	m.instances = append(m.instances, i)
	m.mu.Unlock()
}

const (
	handlerTimeout = 5 * time.Second
	longestHang    = 40 * time.Second
)

// hear takes note of gaps.
func (m *model) hear(err error) {
	g, ok := errors.AsType[*GapError](err)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := g.After + 1; n < g.Next; n++ {
		m.told[number(g.Partition)][n] = true
	}
}

// expire drops some of the oldest events of a partition.
func (m *model) expire(part int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.hub.first(part) + client.SeqNo(m.rng.IntN(60))
	m.hub.expire(part, first)
	if m.marks[part] == none {
		m.unasked[part] = m.hub.first(part)
	}
}

// checkGaps checks that of events that were not handled somebody was told, if others behind
// them were handled.
func (m *model) checkGaps() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for part := range m.by {
		last := none
		for n := range m.by[part] {
			last = max(last, n)
		}
		for n := m.unasked[part]; n < last; n++ {
			if m.by[part][n] == nil && !m.isDead(part, n) && !m.told[part][n] {
				m.faultf("event %d of partition %d is gone, was not handled, and nobody was told", n, part)
				break
			}
		}
	}
}

// hang is a handler that does not heed its context for a while.
func (m *model) hang(i *instance, part int, d time.Duration) {
	m.mu.Lock()
	m.hung[part] = i
	m.mu.Unlock()
	elapse(d)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hung[part] == i {
		m.hung[part] = nil
	}
}

func (m *model) handle(ctx context.Context, i *instance, rng *rand.Rand, p *Partition, events []*client.Received) error {
	part := number(p.ID())
	m.mu.Lock()
	other := m.active[part]
	if other != nil && !other.disturbed && m.hung[part] != other && m.store == nil && (i.replaced.IsZero() || time.Since(i.replaced) > time.Second) {
		m.faultf("%s and %s handle partition %d at the same time", other.name, i.name, part)
	}
	m.active[part] = i
	fails := rng.IntN(20) == 0
	wait := time.Duration(rng.IntN(60)) * time.Millisecond
	hangs := time.Duration(rng.Int64N(int64(longestHang)))
	if m.calm || rng.IntN(100) > 0 {
		hangs = 0
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.active[part] == i {
			m.active[part] = nil
		}
	}()
	if hangs > 0 {
		m.hang(i, part, hangs)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := i.host.alive(); err != nil {
		return err
	}
	if fails {
		return errors.New("model: the handler fails")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		if before := m.by[part][e.SeqNo]; before != nil {
			m.twice++
			if !before.disturbed && !i.disturbed && m.store == nil {
				m.planned++
				m.faultf("event %d of partition %d was handled by %s and again by %s", e.SeqNo, part, before.name, i.name)
			}
			if e.SeqNo <= m.marks[part] && !i.disturbed && m.store == nil {
				m.faultf("event %d of partition %d came again after checkpoint %d", e.SeqNo, part, m.marks[part])
			}
		}
		m.by[part][e.SeqNo] = i
	}
	return nil
}

// disturb marks an instance as one whose events may come again.
func (m *model) disturb(i *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i.disturbed = true
}

// pick returns an instance that runs; nil if there is none.
func (m *model) pick() *instance {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.instances) == 0 {
		return nil
	}
	return m.instances[m.rng.IntN(len(m.instances))]
}

func (m *model) forget(i *instance) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, other := range m.instances {
		if other == i {
			m.instances = append(m.instances[:n:n], m.instances[n+1:]...)
			return
		}
	}
}

func (m *model) crash(i *instance) {
	m.disturb(i)
	i.host.crash()
	if m.hub.coord != nil && m.rng.IntN(2) == 0 {
		m.hub.coord.drop(i.host) // else nobody hears of it: the power is gone
	}
	i.cancel()
	m.forget(i)
}

// step does one random thing.
func (m *model) step() {
	i := m.pick()
	switch n := m.rng.IntN(11); {
	case n < 3 || i == nil:
		if m.names < 12 {
			m.start()
		}
	case n == 3:
		i.cancel()
		m.forget(i)
	case n == 4:
		m.crash(i)
	case n == 5:
		m.disturb(i)
		i.host.suspend()
		elapse(time.Duration(m.rng.IntN(20_000)) * time.Millisecond)
		i.host.resume()
	case n == 6 && m.store != nil:
		m.store.fail(time.Duration(m.rng.IntN(60_000)) * time.Millisecond)
	case n == 6:
		m.disturb(i)
		m.hub.coord.drop(i.host)
	case n == 7 && len(m.hub.parts) < 16:
		m.hub.grow(len(m.hub.parts) + 1)
		m.grow(len(m.hub.parts))
		if m.hub.coord != nil {
			m.hub.coord.grow()
		}
	case n == 9:
		m.expire(m.rng.IntN(len(m.hub.parts)))
	case n == 10 && m.store == nil && m.names < 12: // a younger run with the same ID, of which i may not hear at once
		synctest.Wait() // until it has joined
		m.disturb(i)
		m.mu.Lock()
		i.replaced = time.Now() // it needs a moment to hear
		m.mu.Unlock()
		if m.rng.IntN(2) == 0 {
			m.hub.coord.drop(i.host)
		}
		m.startAs(i.ID)
		synctest.Wait() // until that has joined
		m.forget(i)
		m.replaced = append(m.replaced, i)
	case n == 8 && m.store == nil:
		m.hub.coord.do(func(now time.Time) {
			_ = m.hub.coord.groups.MoveAway(now, fakeGroup, m.rng.IntN(len(m.hub.parts)), time.Second, &m.hub.coord.out)
		})
	}
}

func (m *model) run() {
	m.start()
	for range 25 {
		for part := range m.hub.parts {
			m.hub.publish(part, m.rng.IntN(30))
		}
		m.step()
		elapse(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
	}
	m.start() // so that there is one
	m.mu.Lock()
	m.calm = true
	m.mu.Unlock()
	if m.store != nil {
		m.store.fail(0)
	}
	for waited := time.Duration(0); !m.complete(); waited += time.Second {
		if waited > 10*time.Minute {
			m.t.Error("events are left after ten minutes")
			break
		}
		elapse(time.Second)
	}
	if len(m.replaced) > 0 {
		elapse(longestHang + defaultGrace + time.Minute)
	}
	for _, i := range m.replaced {
		if len(i.ended) == 0 {
			m.t.Errorf("%s runs, whose place a younger run has", i.name)
		}
	}
	for _, i := range m.all {
		i.cancel()
	}
	elapse(longestHang) // none is left
	for _, i := range m.all {
		if err := <-i.ended; err != nil && !errors.Is(err, client.ErrClosed) && !errors.Is(err, ErrHandlerStuck) && !errors.Is(err, client.ErrTaken) {
			m.t.Errorf("%s: %v", i.name, err)
		}
	}
	if m.hub.coord != nil {
		m.hub.coord.stop()
	}
	m.checkGaps()
}

// complete reports whether every event was handled.
func (m *model) complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for part := range m.by {
		for n := int(m.hub.first(part)); n < m.hub.size(part); n++ {
			if m.by[part][client.SeqNo(n)] == nil && !m.isDead(part, client.SeqNo(n)) {
				return false
			}
		}
	}
	return true
}

// isDead reports whether an event is a dead letter.
func (m *model) isDead(part int, n client.SeqNo) bool {
	key := fmt.Sprintf("hub/%d/%d", part, n)
	for _, l := range m.hub.letters() {
		if l.ID == key {
			return true
		}
	}
	return false
}

// faultyStore is a store that is down at times, whose answers get lost, and whose clock is
// minutes away from those of the instances.
type faultyStore struct {
	CheckpointStore
	saved func(partition int, n client.SeqNo)
	skew  time.Duration
	blind bool // it tells no time

	steady bool // it fails only when it is told to

	mu          sync.Mutex
	rng         *rand.Rand // guarded by mu
	down        time.Time  // until when; guarded by mu
	loseAnswers int        // to so many claims; guarded by mu
}

var errStoreDown = errors.New("fake: store is down")

func (s *faultyStore) fail(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = time.Now().Add(d)
}

func (s *faultyStore) trouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.down) || !s.steady && s.rng.IntN(50) == 0 {
		return errStoreDown
	}
	return nil
}

func (s *faultyStore) ListOwnership(ctx context.Context, scope Scope) ([]Ownership, time.Time, error) {
	if err := s.trouble(); err != nil {
		return nil, time.Time{}, err
	}
	list, now, err := s.CheckpointStore.ListOwnership(ctx, scope)
	for i := range list {
		list[i].Modified = list[i].Modified.Add(s.skew)
	}
	if s.blind {
		return list, time.Time{}, err
	}
	return list, now.Add(s.skew), err
}

func (s *faultyStore) ClaimOwnership(ctx context.Context, claims []Ownership) ([]Ownership, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	won, err := s.CheckpointStore.ClaimOwnership(ctx, claims)
	s.mu.Lock()
	lost := s.loseAnswers > 0
	s.loseAnswers--
	s.mu.Unlock()
	if lost || s.trouble() != nil {
		return nil, errStoreDown // written, but the answer and its ETags are lost
	}
	return won, err
}

func (s *faultyStore) ListCheckpoints(ctx context.Context, scope Scope) ([]Checkpoint, error) {
	if err := s.trouble(); err != nil {
		return nil, err
	}
	return s.CheckpointStore.ListCheckpoints(ctx, scope)
}

func (s *faultyStore) SetCheckpoint(ctx context.Context, c Checkpoint) error {
	if err := s.trouble(); err != nil {
		return err
	}
	s.saved(number(c.Partition), c.SeqNo)
	return s.CheckpointStore.SetCheckpoint(ctx, c)
}

func TestRandomSchedules(t *testing.T) {
	for _, mode := range []struct {
		name  string
		store bool
	}{{"coordinator", false}, {"store", true}} {
		t.Run(mode.name, func(t *testing.T) {
			for seed := range *seeds / 2 {
				synctest.Test(t, func(t *testing.T) {
					m := newModel(t, seed, mode.store)
					m.run()
					for n, f := range m.faults {
						if n < 5 {
							t.Errorf("seed %d: %s", seed, f)
						}
					}
				})
				if t.Failed() {
					t.Fatalf("seed %d failed", seed)
				}
			}
		})
	}
}
