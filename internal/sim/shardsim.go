// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// shardSim is one shard, the model of it, and the clients that use it.
type shardSim struct {
	w      *world
	number journal.Shard
	s      *queueserver.Shard

	entities map[queueserver.ID]*modelEntity
	dropped  map[queueserver.ID]*modelEntity // in this life: a crash may bring them back
	now      time.Time                       // of the shard: never decreases within one process
	ticked   bool                            // in this step what is due was done
	stuck    bool                            // the step before has not reached the timers that are due

	// versions are the states since the start of this process, one after each
	// operation and one at the end of each step. A crash leaves one of them, not
	// before reported.
	versions []version
	reported int

	open      int // operations that have no answer yet
	sending   *sendOp
	consumers []*consumer
	seeking   map[queueserver.ConsumerID]*seeking // wait for a session
	granting  int                                 // consumers that have a session and no answer yet
	stale     []token                             // of locks of earlier processes and expired locks, most likely
	unread    []unread
	taken     map[taking]take                         // by the observer, not yet at its sink
	held      map[place]map[queue.SeqNo]*modelMessage // until their body is read
	settling  *op                                     // settlement that is being applied in its own turn
	spared    map[taking]bool                         // returned by the model, and about to be by the shard
	parked    map[taking][]*op                        // settlements that wait for a body
	leaving   []*consumer                             // detached, not yet confirmed
	// background is what the shard wants done beside it.
	background []func()
	given      map[taking]bool       // tokens of all processes
	unlogged   map[renewal]time.Time // renewals of durable locks that a restart may not know of
	recalls    recalls
	crashes    bool // the next step is followed by a simulated crash
}

// modelEntity is an entity of the model.
type modelEntity struct {
	queueserver.Definition
	parts    [3]*modelQueue
	rules    *rules
	admitter *modelAdmitter
}

// place names a queue.
type place struct {
	id   queueserver.ID
	part queueserver.SubQueue
}

func (p place) queue() queueserver.QueueID {
	return queueserver.QueueID{Entity: p.id, SubQueue: p.part}
}

// token is a lock that some client believes to have.
type token struct {
	place
	queue.Token
	consumer queueserver.ConsumerID // that got it; zero is none
}

func newShardSim(w *world, n journal.Shard) *shardSim {
	h := &shardSim{w: w, number: n, entities: make(map[queueserver.ID]*modelEntity),
		dropped: make(map[queueserver.ID]*modelEntity), given: make(map[taking]bool), unlogged: make(map[renewal]time.Time)}
	h.begin()
	h.addVersion()
	return h
}

// begin drops what is only in the memory of a process.
func (h *shardSim) begin() {
	h.consumers, h.leaving, h.unread, h.sending, h.settling, h.background = nil, nil, nil, nil, nil, nil
	h.taken, h.held, h.parked = make(map[taking]take), make(map[place]map[queue.SeqNo]*modelMessage), make(map[taking][]*op)
	h.recalls, h.spared = newRecalls(), make(map[taking]bool)
	h.seeking, h.granting = make(map[queueserver.ConsumerID]*seeking), 0
	h.stuck = false
}

// work does some of the shard's background work, possibly long after it was
// requested.
func (h *shardSim) work(most int) {
	for ; most > 0 && len(h.background) > 0 && h.w.broken == nil; most-- {
		i := h.w.rng.IntN(len(h.background))
		f := h.background[i]
		h.background = slices.Delete(h.background, i, i+1)
		h.w.event("work %d", h.number)
		f()
		h.mark(func() { // behind what it brought
			h.depart()
			h.addVersion()
		})
	}
}

func (h *shardSim) sorted() []*modelEntity {
	es := make([]*modelEntity, 0, len(h.entities))
	for _, id := range slices.Sorted(maps.Keys(h.entities)) {
		es = append(es, h.entities[id])
	}
	return es
}

// queue returns the model of a queue, nil if its entity was dropped.
func (h *shardSim) queue(p place) *modelQueue {
	e, ok := h.entities[p.id]
	if !ok {
		return nil
	}
	return e.parts[p.part]
}

// follow lets the model of a queue go over to another order when the queue does.
func (h *shardSim) follow(p place) {
	if real, err := h.s.Manual().Queue(p.queue()); err == nil {
		h.queue(p).reorder(real)
	}
}

// version is the number that the next version will have.
func (h *shardSim) version() int { return len(h.versions) }

func (h *shardSim) addVersion() { h.versions = append(h.versions, version{h.digest(), h.now}) }

// noteReported records that a client was told of a version: no crash may undo
// it now.
func (h *shardSim) noteReported(version int) { h.reported = max(h.reported, version) }

// op is an operation on its way through a shard.
type op struct {
	name    string
	version int // that it made; known once it was run
	ran     bool

	// Of a settlement: what it writes into messages, and which it has settled.
	set     []message.Change
	settled []queue.Token
	after   time.Duration // until when the messages wait that it abandons
}

// do posts an operation between two markers: before computes the model's
// result, and after compares when it has been applied.
func (h *shardSim) do(name string, before func(), post func(*op) error, after func(*op)) {
	o := &op{name: name}
	h.w.event("post %d %s", h.number, name)
	h.mark(before)
	if err := post(o); err != nil {
		h.w.failf("%s: %v", name, err)
	}
	h.open++
	h.mark(func() {
		o.ran, o.version = true, h.version()
		if after != nil {
			after(o)
		}
		h.addVersion()
	})
}

// mark has fn run between operations.
func (h *shardSim) mark(fn func()) {
	if fn == nil {
		return
	}
	err := h.s.Manual().Inject(func() error {
		fn()
		return nil
	}, nil)
	if err != nil {
		h.w.failf("post: %v", err)
	}
}

// answered counts an answer. An answer without an error reports to the client
// that everything up to its operation is durable.
func (h *shardSim) answered(o *op, err error) {
	h.open--
	h.w.event("answer %d %s %v", h.number, o.name, err)
	if err == nil && o.ran {
		h.noteReported(o.version)
	}
}

// step lets the shard work once and compares.
func (h *shardSim) step() {
	for _, e := range h.sorted() {
		for _, q := range e.parts {
			q.mayBeEvaluated() // before time advances
		}
	}
	h.now = later(h.now, h.w.now)
	h.ticked = false
	tick := func() { // behind all operations, and before what is due
		h.ticked, h.stuck = true, false
		short := h.s.Short() // no failure is counted then
		for _, e := range h.sorted() {
			for part, q := range e.parts {
				q.tick(h.now, h.version(), func(m *modelMessage) bool {
					return !short && h.arrived(place{e.ID, queueserver.SubQueue(part)}, m)
				})
			}
		}
	}
	if !h.stuck || !h.s.Stuck() { // else the time of the unfinished step is used
		h.stuck = true
		h.mark(tick)
	}
	h.w.event("step %d", h.number)
	h.s.Step(h.w.now)
	if h.w.chance(2) {
		h.work(1)
	}
	if err := h.s.Failed(); err != nil {
		h.w.stopped(err)
		h.addVersion() // what it did before it failed may be on the disk
		return
	}
	if h.s.Stuck() {
		h.w.event("stuck %d", h.number)
		h.addVersion()
		return
	}
	for _, c := range h.consumers {
		c.drain()
	}
	h.compare()
	h.addVersion()
	if h.crashes {
		h.crashes = false
		h.w.result.CrashChecks++
		h.w.recovered(h.w.disk.CrashClone(h.w.durable.Uint64()))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// arrived reports whether a locked message was delivered to its consumer. If
// not, the shard may be about to return it.
func (h *shardSim) arrived(p place, m *modelMessage) bool {
	key := taking{p, m.seq, m.nonce}
	_, taken := h.taken[key]
	if !taken && h.held[p][m.seq] == nil {
		return true
	}
	delete(h.taken, key)
	delete(h.held[p], m.seq)
	h.spared[key] = true
	return false
}

// compare checks the queues that the step changed against the model.
func (h *shardSim) compare() {
	every := h.w.turn%16 == 0
	if got, want := len(h.s.Definitions()), len(h.entities); got != want {
		h.w.failf("shard %d has %d entities, want %d", h.number, got, want)
	}
	for _, e := range h.sorted() {
		for part, q := range e.parts {
			if q.touched || every {
				h.compareQueue(place{e.ID, queueserver.SubQueue(part)}, q)
			}
		}
	}
	if every {
		if err := h.s.Check(); err != nil {
			h.w.failf("shard %d: %v", h.number, err)
		}
	}
}

func (h *shardSim) compareQueue(p place, q *modelQueue) {
	q.touched = false
	real, err := h.s.Manual().Queue(p.queue())
	if err != nil {
		h.w.failf("%v is missing: %v", p, err)
	}
	q.reorder(real)
	if len(q.dead) > 0 {
		h.w.failf("%v: message %d should have become a dead letter", p, q.dead[0].m.seq)
	}
	for _, m := range slices.Clone(q.messages) {
		d, ok := real.Lookup(m.seq)
		if m.expired(h.now) {
			if !ok && !(q.cfg.DeadLetterExpired && !q.cfg.DeadLetterQueue) {
				q.remove(m)
			} else if at, due := real.NextDeadline(); !due || at.After(h.now) {
				h.w.failf("%v: message %d expired at %v and no timer will remove it", p, m.seq, m.expires())
			}
			q.touched = true // until it is removed
			continue
		}
		if !ok {
			h.w.failf("%v: message %d (%v) is missing", p, m.seq, m.state)
		}
		if got, want := seen(d), expected(m); got != want {
			h.w.failf("%v: message %d\n got %+v\nwant %+v", p, m.seq, got, want)
		}
		if t := (queue.Token{Seq: m.seq, Nonce: m.nonce}); m.durable && q.holder(h.now, t) == m && !real.LockDurable(h.now, t) {
			h.w.failf("%v: message %d has lost its durable lock", p, m.seq)
		}
	}
	if got := real.Started(); !q.blurred(h.now) && !slices.Equal(got, q.known()) {
		h.w.failf("%v: started %q, want %q", p, got, q.known())
	}
	if got, want := real.Counts(), q.counts(); got != want {
		h.w.failf("%v: counts %+v, want %+v", p, got, want)
	}
	if got, want := real.Footprint(), q.footprint(q.counts()); got != want {
		h.w.failf("%v: takes %d bytes, want %d", p, got, want)
	}
	if got := real.Last(); got != q.last {
		h.w.failf("%v: highest number %d, want %d", p, got, q.last)
	}
}

// view is what can be seen of a message without its body.
type view struct {
	state     queue.State
	level     queue.Level
	class     queue.Class
	key       string
	origin    queue.SeqNo
	failures  uint32
	size      int
	saved     int
	session   string
	inSession bool
	enqueued  int64
	since     int64
	expires   int64
	notBefore int64
}

func seen(d queue.Delivery) view {
	return view{d.State, d.Level, d.Class, d.Key, d.Origin, d.Failures, int(d.Body.Size), int(d.Saved.Size), d.Session, d.InSession,
		nano(d.EnqueuedAt), nano(since(d)), nano(d.ExpiresAt), nano(d.NotBefore)}
}

func expected(m *modelMessage) view {
	return view{m.state, m.level, m.class, m.key, m.origin, m.failures, m.size, m.savedSize, m.session, m.inSession,
		nano(m.enqueued), nano(m.since), nano(m.expires()), nano(m.notBefore)}
}

// since is from when the age of a message counts.
func since(d queue.Delivery) time.Time {
	if d.OrderTime.IsZero() {
		return d.EnqueuedAt
	}
	return d.OrderTime
}

func nano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
