// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	// Workers is how many forwarders work at the same time.
	Workers = 64
	// Turn is how many messages a forwarder moves before the next one runs.
	Turn = 64
	// Window is the limit of unsettled messages of a forwarder.
	Window = 256
	// underWay is about how many bytes of messages all forwarders have read and not stored.
	underWay = 32 << 20
	// keptSize is the size up to which a message that was delivered from the cache is kept until
	// its turn. Larger ones are read again.
	keptSize = 16 << 10
)

// Catalog is what forwarders need of the catalog of entities.
type Catalog interface {
	Writable(addr string) (*catalog.Entity, error)
	Send(n *catalog.Entity, batch []*message.Message, o catalog.SendOptions, done func([]queue.SeqNo, error))
}

// jobName is the name of the jobs of forwarders.
const jobName = "forward"

// Forwarders are the broker's own consumers: they forward messages, and publish what a
// topic has stored.
//
// Moving a message may take long: it is read from the disk, and all rules of a topic are
// evaluated for it. So each forwarder is a job, which runs while it has messages; their
// number is bounded by the window.
type Forwarders struct {
	catalog Catalog
	runner  *jobs.Runner
	space   *budget.Account // for messages that are under way

	mu      sync.Mutex
	sources map[source]*forwarder // guarded by mu

	waiting atomic.Int64  // forwarders whose target accepts nothing at present
	changes atomic.Uint64 // of definitions
}

// New returns forwarders without sources; runner runs them.
func New(c Catalog, runner *jobs.Runner) *Forwarders {
	runner.Limit(jobName, Workers)
	return &Forwarders{catalog: c, runner: runner, space: budget.New(underWay), sources: make(map[source]*forwarder)}
}

// Watch starts and stops the forwarders of an entity by its definition.
func (ms *Forwarders) Watch(n *catalog.Entity) {
	def := n.Definition()
	ms.set(source{n, queueserver.Main}, n.Kind == catalog.KindTopic || def.Properties.ForwardTo != "")
	ms.set(source{n, queueserver.DeadLetter}, def.Properties.ForwardDeadLetteredMessagesTo != "")
}

// Unwatch stops the forwarders of an entity that was deleted.
func (ms *Forwarders) Unwatch(n *catalog.Entity) {
	ms.set(source{n, queueserver.Main}, false)
	ms.set(source{n, queueserver.DeadLetter}, false)
}

func (ms *Forwarders) set(src source, wanted bool) {
	ms.mu.Lock()
	m, running := ms.sources[src]
	switch {
	case wanted && !running:
		m = &forwarder{ms: ms, source: src, window: Window}
		m.job = ms.runner.Add(m)
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

// Changed has the forwarders that wait for n, or for a topic of which n is a
// subscription, try again now.
func (ms *Forwarders) Changed(n *catalog.Entity) {
	ms.changes.Add(1) // first: a forwarder that does not wait yet must not begin to
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
