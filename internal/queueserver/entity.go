// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/arrivals"
	"github.com/triagemq/triagemq/internal/queueserver/recall"
)

// ID numbers an entity within its shard; it is never used twice.
type ID uint32

// firstID is the number of the first entity of a shard.
const firstID ID = 1

// SubQueue is one of the queues an entity consists of.
type SubQueue uint8

// The sub-queues. They are on disk and never change.
const (
	Main SubQueue = iota
	DeadLetter
	TransferDeadLetter
	parts = 4 // unit numbers reserved for each entity
)

// Definition is an entity as the shard's owner sees it: the meta bytes are the
// owner's own and come back unread.
type Definition struct {
	ID   ID
	Name string
	Meta []byte
	// Sessions says that every message of the main queue belongs to one.
	Sessions bool
	// Published is how many messages a topic has seen.
	Published uint64
	// Note is what the owner noted of it last.
	Note []byte
}

// entity is one entity and its queues.
type entity struct {
	Definition
	parts [TransferDeadLetter + 1]*hostedQueue
	units [TransferDeadLetter + 1]*engine.Unit // of the parts
	// used is when an operation last used it since the shard was opened.
	used time.Time
	// counted is set while the step has yet to record Published.
	counted bool
	// reserved is how many bytes it has of Options.Reserve.
	reserved int64
}

// weight is how many bytes are charged for the queues of the entity.
func (e *entity) weight() (n int64) {
	for _, hq := range e.parts {
		n += hq.weight
	}
	return n
}

// hostedQueue is one queue machine and the state of the shard for it.
type hostedQueue struct {
	shard  *Shard
	unit   engine.Unit // number ID*parts + Part
	entity *entity
	part   SubQueue
	q      *queue.Queue

	observer       Observer         // nil is none
	monitor        Monitor          // the observer, if the shard made it; else nil
	toMeasure      bool             // on Shard.measured.due
	consumers      []*consumer      // attached
	credits        credits          // those with credit, served in turns
	refused        int              // consumers in a row that got nothing, since anything changed
	drains         []*consumer      // those that are draining
	recallable     []*consumer      // those that may have deliveries to recall
	sessionWaiters []*sessionWaiter // callers that wait for a free session
	dirty          bool             // on Shard.dirty
	toWeigh        bool             // on Shard.toWeigh
	weight         int64            // bytes that are charged for q
	reordering     bool             // an operation puts its messages into another order
	// classified is the revision of the policy by which all messages are classified,
	// as EndReclassify said; lastOutdated is the highest number of a message that was
	// stored with the class of an earlier policy.
	classified   int64
	lastOutdated queue.SeqNo
	// recalled are the deliveries that were recalled, by the ready message for which
	// that was done.
	recalled recall.Requests[ConsumerID]
	// recallFrom is which consumer is considered first, if there is not time for all.
	recallFrom int
	// recalledForFree says that a delivery was recalled for a consumer with credit, ever.
	recalledForFree bool

	stranded int // messages of it on Shard.stranded
	// parked are settlements that wait for bodies.
	parked []*editing
	// fence is what has to be durable before the queue delivers anything: the return
	// of messages that were removed, or the new properties of those that were released.
	fence  journal.Position
	fenced bool // on Shard.fenced

	arrivals     arrivals.Tracker
	assignedSeqs bool // on Shard.assignedSeqs
}

func (s *Shard) newEntity(def Definition) *entity {
	e := &entity{Definition: def}
	for p := range e.parts {
		q := queue.New(queue.Config{
			Sessions:        def.Sessions && SubQueue(p) == Main,
			DeadLetterQueue: SubQueue(p) != Main,
		}, s.tx.Epoch())
		hq := &hostedQueue{shard: s, entity: e, part: SubQueue(p), q: q}
		hq.unit = engine.Unit{ID: uint64(def.ID)*parts + uint64(p), Machine: q, Owner: hq}
		e.parts[p], e.units[p] = hq, &hq.unit
	}
	e.resize()
	s.entities[def.ID] = e
	s.nextID = max(s.nextID, def.ID+1)
	return e
}

// end ends all consumers, settlements and session waiters of the queue. Each of them gets
// the error that notify gives it, when notify calls its function.
func (hq *hostedQueue) end(notify func(func(error))) {
	for _, c := range hq.consumers {
		hq.shard.ended(c)
		c.held.Clear()
		c.fetching = nil
		if !c.leaving { // else it was detached
			notify(c.notifyEnded)
		}
	}
	hq.consumers = nil
	for _, e := range hq.parked {
		e.over = true
		notify(e.o.Fail)
	}
	hq.parked = nil
	for _, w := range hq.sessionWaiters {
		delete(hq.shard.sessionWaiters, w.a.Consumer)
		notify(w.refuse)
	}
	hq.sessionWaiters = nil
}

// dropped reports whether the entity was dropped. An operation that has kept the queue
// must not change it then.
func (hq *hostedQueue) dropped() bool { return hq.shard.entities[hq.entity.ID] != hq.entity }

// hostedQueue finds a queue by its entity and part.
func (s *Shard) hostedQueue(id ID, part SubQueue) (*hostedQueue, error) {
	e, ok := s.entities[id]
	if !ok || int(part) >= len(e.parts) {
		return nil, ErrNoEntity
	}
	return e.parts[part], nil
}

// sorted returns the entities in the order of their numbers.
func (s *Shard) sorted() []*entity {
	es := make([]*entity, 0, len(s.entities))
	for _, id := range slices.Sorted(maps.Keys(s.entities)) {
		es = append(es, s.entities[id])
	}
	return es
}

// touch has the queue dispatched before the step ends: there may be something to
// deliver, or another deadline.
func (s *Shard) touch(hq *hostedQueue) {
	hq.refused = 0
	if !hq.dirty {
		hq.dirty = true
		s.dirty = append(s.dirty, hq)
	}
	s.weighLater(hq)
}

// collectEffects acts on what a machine just did: it counts bodies, and stores dead
// letters in the same group. The machine's records are in that group already.
func (s *Shard) collectEffects(hq *hostedQueue) {
	for _, ref := range s.tx.Collect(&hq.unit) {
		s.cache.Drop(ref)
	}
	if hq.observer != nil {
		for _, e := range s.eff.Expired {
			hq.observer.Expired(s.tx.Now(), e)
		}
	}
	var dead []queue.DeadLetter
	if len(s.eff.DeadLettered) > 0 {
		dead = slices.Clone(s.eff.DeadLettered)
	}
	s.eff.ResetLeft()
	s.touch(hq)
	if hq.observer != nil {
		for i := range dead {
			hq.observer.DeadLettered(s.tx.Now(), &dead[i])
		}
	}
	s.deadLetterAll(hq, dead)
}

// resize says how much of a snapshot the entity itself takes. The first of its queues
// counts it.
func (e *entity) resize() {
	e.units[Main].Overhead = 32 + uint64(len(e.Name)+len(e.Meta)+len(e.Note))
}

// definable returns why a definition cannot be written, if so. Its records must fit into a
// group, together with what an open one may have: up to a quarter. The configuration of its
// queues repeats what its policy says.
func (s *Shard) definable(meta []byte) error {
	const names = 2 << 10 // and what is the same for all
	switch {
	case 2*len(meta) > s.tx.MaxRecord():
		return ErrTooLarge
	case !s.tx.HasSpace(2*len(meta) + names):
		return ErrDiskFull
	}
	return nil
}

// expiryFits reports whether there is space to make dead letters of the messages that wait in
// an entity when they expire, if that is what changes.
func (s *Shard) expiryFits(e *entity, to map[SubQueue]queue.Config) bool {
	for p, cfg := range to {
		if q := e.parts[p].q; cfg.DeadLetterExpired && !q.DeadLettersExpired() && p == Main && !s.tx.HasSpace(int(q.ExpirySpace())) {
			return false
		}
	}
	return true
}

func (s *Shard) configure(hq *hostedQueue, cfg queue.Config) {
	hq.q.Configure(s.tx.Now(), cfg, s.out(hq))
	s.collectEffects(hq)
	s.reorder(hq)
}

// New reports whether no entity was ever defined in the shard. It is for the owner that has
// just opened the shard, before Run.
func (s *Shard) New() bool { return s.nextID == firstID }

// Definitions lists the entities, as recovery found them. It is for the owner
// that has just opened the shard, before Run.
func (s *Shard) Definitions() []Definition {
	defs := make([]Definition, 0, len(s.entities))
	for _, e := range s.sorted() {
		defs = append(defs, e.Definition)
	}
	return defs
}

// noteAssigned notes that the queue assigned numbers up to seq in this step.
func (s *Shard) noteAssigned(hq *hostedQueue, seq queue.SeqNo) {
	if hq.arrivals.Assigned(seq) && !hq.assignedSeqs {
		hq.assignedSeqs = true
		s.assignedSeqs = append(s.assignedSeqs, hq)
		s.tx.MustCommit()
	}
}

// recordArrivals notes where the journal has the messages whose numbers were assigned
// since the last commit, and those that were returned.
func (s *Shard) recordArrivals(at journal.Position) {
	for _, hq := range s.assignedSeqs {
		hq.assignedSeqs = false
		hq.arrivals.Appended(at, s.tx.Durable())
	}
	clear(s.assignedSeqs) // what is deleted must leave memory
	s.assignedSeqs = s.assignedSeqs[:0]
	for _, hq := range s.fenced {
		hq.fence, hq.fenced = at, false
	}
	clear(s.fenced)
	s.fenced = s.fenced[:0]
}
