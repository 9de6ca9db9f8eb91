// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/shard"
)

const (
	// maxForwarding is how many forwarders work at the same time.
	maxForwarding = 64
	// forwardTurn is how many messages a forwarder moves before the next in line has
	// its turn.
	forwardTurn = 64
)

// forwardJob is the name of the jobs of forwarders.
const forwardJob = "forward"

// forwarders are the broker's own consumers: they forward what is to be forwarded and
// publish what a topic has held.
//
// To move a message may take long: it is read from the disk, and all rules of a
// topic are evaluated for it. So each forwarder is a job, which runs while it has messages,
// and what is in hand is bounded by the forwarders' windows.
type forwarders struct {
	b *Broker

	mu      sync.Mutex
	sources map[source]*forwarder // guarded by mu

	waiting atomic.Int64  // forwarders whose target takes nothing at present
	changes atomic.Uint64 // of definitions
}

func newForwarders(b *Broker) *forwarders {
	b.runner.Limit(forwardJob, maxForwarding)
	return &forwarders{b: b, sources: make(map[source]*forwarder)}
}

// watch starts and stops the forwarders of a node as its definition asks.
func (ms *forwarders) watch(n *catalog.Entity) {
	def := n.Definition()
	ms.set(source{n, shard.Main}, n.Kind == KindTopic || def.Properties.ForwardTo != "")
	ms.set(source{n, shard.DeadLetter}, def.Properties.ForwardDeadLetteredMessagesTo != "")
}

// unwatch stops the forwarders of a node that is gone.
func (ms *forwarders) unwatch(n *catalog.Entity) {
	ms.set(source{n, shard.Main}, false)
	ms.set(source{n, shard.DeadLetter}, false)
}

func (ms *forwarders) set(src source, wanted bool) {
	ms.mu.Lock()
	m, running := ms.sources[src]
	switch {
	case wanted && !running:
		m = &forwarder{ms: ms, source: src, window: forwardWindow}
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

// changed has the forwarders that wait for n, or for a topic of which n is a
// subscription, try again now.
func (ms *forwarders) changed(n *catalog.Entity) {
	ms.changes.Add(1) // first: who does not wait yet must not begin to
	if ms.waiting.Load() == 0 {
		return
	}
	ms.mu.Lock()
	var all []*forwarder
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
