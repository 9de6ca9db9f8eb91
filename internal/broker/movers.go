// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/shard"
)

const (
	// maxForwarding is how many movers work at the same time.
	maxForwarding = 64
	// moverTurn is how many messages a mover moves before the next in line has
	// its turn.
	moverTurn = 64
)

// forwardJob is the name of the jobs of movers.
const forwardJob = "forward"

// movers are the broker's own consumers: they forward what is to be forwarded and
// publish what a topic has held.
//
// To move a message may take long: it is read from the disk, and all rules of a
// topic are evaluated for it. So each mover is a job, which runs while it has messages,
// and what is in hand is bounded by the movers' windows.
type movers struct {
	b *Broker

	mu      sync.Mutex
	sources map[source]*mover // guarded by mu

	waiting atomic.Int64  // movers whose target takes nothing at present
	changes atomic.Uint64 // of definitions
}

func newMovers(b *Broker) *movers {
	b.runner.Limit(forwardJob, maxForwarding)
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
		m.job = ms.b.runner.Add(m)
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
