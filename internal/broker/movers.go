// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/shard"
)

const (
	// maxWorkers is how many movers work at the same time.
	maxWorkers = 64
	// moverTurn is how many messages a mover moves before the next in line has
	// its turn.
	moverTurn = 64
)

// movers are the broker's own consumers: they forward what is to be forwarded and
// publish what a topic has held.
//
// To move a message may take long: it is read from the disk, and all rules of a
// topic are evaluated for it. So movers do not wait for each other: one with
// messages gets in line, and a worker, a goroutine that lives as long as the line
// is not empty, works for it alone. There are at most maxWorkers workers, however
// many movers there are; beyond that the movers take turns of moverTurn messages.
// What is in hand is bounded by the movers' windows.
type movers struct {
	b *Broker

	mu      sync.Mutex
	sources map[source]*mover // guarded by mu
	line    []*mover          // guarded by mu; with messages, and without a worker
	workers int               // guarded by mu; goroutines at work
	running bool              // guarded by mu; run is under way

	done    sync.WaitGroup // of the workers
	waiting atomic.Int64   // movers whose target takes nothing at present
	changes atomic.Uint64  // of definitions
}

func newMovers(b *Broker) *movers {
	return &movers{b: b, sources: make(map[source]*mover)}
}

// watch starts and stops the movers of a node as its definition asks.
func (ms *movers) watch(n *catalog.Entity) {
	def := n.Definition()
	ms.set(source{n, shard.Main}, n.Kind == KindTopic || def.Properties.ForwardTo != "")
	ms.set(source{n, shard.DeadLetter}, def.Properties.ForwardDeadLetteredMessagesTo != "")
}

// unwatch stops the movers of a node that is gone.
func (ms *movers) unwatch(n *catalog.Entity) {
	ms.set(source{n, shard.Main}, false)
	ms.set(source{n, shard.DeadLetter}, false)
}

func (ms *movers) set(src source, wanted bool) {
	ms.mu.Lock()
	m, running := ms.sources[src]
	switch {
	case wanted && !running:
		m = &mover{ms: ms, source: src, window: moverWindow}
		ms.sources[src] = m
	case !wanted && running:
		delete(ms.sources, src)
	}
	ms.mu.Unlock()
	switch {
	case wanted && !running:
		m.start()
	case !wanted && running:
		m.stop()
	}
}

// changed has the movers that wait for n, or for a topic of which n is a
// subscription, try again now.
func (ms *movers) changed(n *catalog.Entity) {
	ms.changes.Add(1) // first: who does not wait yet must not begin to
	if ms.waiting.Load() == 0 {
		return
	}
	ms.mu.Lock()
	var all []*mover
	for _, m := range ms.sources {
		all = append(all, m)
	}
	ms.mu.Unlock()
	for _, m := range all {
		if m.waits() && m.follows(n) {
			m.resume()
		}
	}
}

// run lets the movers work until ctx ends, and returns when none does.
func (ms *movers) run(ctx context.Context) {
	ms.mu.Lock()
	ms.running = true
	for range ms.line {
		ms.hire()
	}
	ms.mu.Unlock()
	<-ctx.Done()
	ms.mu.Lock()
	ms.running = false
	ms.mu.Unlock()
	ms.done.Wait()
}

// join puts a mover at the end of the line.
func (ms *movers) join(m *mover) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	ms.line = append(ms.line, m)
	ms.hire()
}

// hire starts a worker if there may be one more. The caller has mu; run waits for
// the worker.
func (ms *movers) hire() {
	if ms.running && ms.workers < maxWorkers {
		ms.workers++
		ms.done.Go(ms.work)
	}
}

// work works for the movers in line until there is none.
func (ms *movers) work() {
	for m := ms.next(nil); m != nil; {
		if m.turn() {
			m = ms.next(m) // there may be more
		} else {
			m = ms.next(nil)
		}
	}
}

// next takes the first mover out of the line, after it has put again at its end, if
// that is not nil. Without a mover the worker is done.
func (ms *movers) next(again *mover) *mover {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if again != nil {
		ms.line = append(ms.line, again)
	}
	if len(ms.line) == 0 || !ms.running {
		ms.workers--
		return nil
	}
	m := ms.line[0]
	ms.line[0] = nil
	ms.line = ms.line[1:]
	return m
}
