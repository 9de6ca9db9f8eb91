// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// simulateCrash recovers what a crash at this moment would leave, and then
// continues with the running process.
func (w *world) simulateCrash() {
	w.result.CrashChecks++
	w.recovered(w.disk.CrashClone(w.rng.Uint64()))
}

// crash ends the process here and starts it again on what the disk kept.
func (w *world) crash() {
	w.result.Crashes++
	seed := w.rng.Uint64()
	w.event("crash %d", seed)
	image := w.disk.CrashClone(seed)
	if w.opts.disk > 0 && w.other.IntN(3) == 0 {
		image.SetOthers(w.opts.disk) // while it was down, others have taken all there was
	}
	found := w.recovered(image.CrashClone(0)) // nothing in it is unsynced: a copy
	w.start(image)
	for i, h := range w.shards {
		h.adopt(found[i])
	}
	for i, f := range w.survey(w.shards) {
		if f.exact != found[i].exact {
			w.failf("shard %d: recovered twice from one disk, with two results", i)
		}
	}
}

// finding is what a recovery found of one shard.
type finding struct {
	version int // index of the state in versions
	exact   sum // of everything, positions of bodies included
}

// recovered opens a disk after a crash and checks that each shard is in a state
// that it had, not before the last one that was reported.
func (w *world) recovered(disk *vfs.Mem) []finding {
	_, shards, err := w.open(disk)
	if err != nil {
		w.failf("recover: %v", err)
	}
	real := make([]*shardSim, len(shards))
	for i, s := range shards {
		real[i] = &shardSim{w: w, number: w.shards[i].number, s: s, given: w.shards[i].given, unlogged: w.shards[i].unlogged}
	}
	found := w.survey(real)
	for i, h := range w.shards {
		r := real[i]
		r.load()
		state := r.digest()
		v := -1
		for j, s := range slices.Backward(h.versions) {
			if !s.at.Equal(r.now) {
				r.now = s.at
				state = r.digest()
			}
			if s.sum == state {
				v = j
				break
			}
		}
		switch {
		case v < 0:
			w.failf("shard %d: recovered a state that never was\n%s", h.number, h.difference(r))
		case v < h.reported:
			w.failf("shard %d: recovered version %d of %d, but %d was reported\n%s", h.number, v, len(h.versions), h.reported, h.difference(r))
		}
		found[i].version = v
		w.event("recovered %d %d of %d", h.number, v, len(h.versions))
	}
	return found
}

// survey computes sums over the complete contents of shards, references
// included.
func (w *world) survey(shards []*shardSim) []finding {
	found := make([]finding, len(shards))
	for i, h := range shards {
		var b bytes.Buffer
		for _, d := range h.s.Definitions() {
			spellEntity(&b, d)
			for part := queueserver.Main; part <= queueserver.TransferDeadLetter; part++ {
				q, err := h.s.Manual().Queue(queueserver.QueueID{Entity: d.ID, SubQueue: part})
				if err != nil {
					w.failf("inspect: %v", err)
				}
				s := q.StateHash(time.Time{})
				b.Write(s[:])
			}
		}
		found[i].exact = sha256.Sum256(b.Bytes())
	}
	return found
}

// load builds the model of a shard's contents, bodies included.
func (h *shardSim) load() {
	h.entities = make(map[queueserver.ID]*modelEntity)
	for _, d := range h.s.Definitions() {
		e := &modelEntity{Definition: d, rules: h.w.policies[string(d.Meta)]}
		for part := range e.parts {
			e.parts[part] = h.loadQueue(place{d.ID, queueserver.SubQueue(part)})
		}
		h.entities[d.ID] = e
	}
}

func (h *shardSim) loadQueue(p place) *modelQueue {
	s := h.s.Manual()
	real, err := s.Queue(p.queue())
	if err != nil {
		h.w.failf("inspect: %v", err)
	}
	q := newModelQueue(real.Config(), &h.now)
	q.last, q.started = real.Last(), real.Started()
	ds, _ := real.Peek(time.Time{}, queue.Peek{Max: math.MaxInt})
	for _, d := range ds {
		m := &modelMessage{
			seq: d.Seq, origin: d.Origin, level: d.Level, class: d.Class, key: d.Key, session: d.Session, inSession: d.InSession,
			enqueued: d.EnqueuedAt, since: since(d), notBefore: d.NotBefore, failures: d.Failures, state: d.State,
		}
		if !d.ExpiresAt.IsZero() {
			m.life = d.ExpiresAt.Sub(d.EnqueuedAt)
		}
		if d.State == queue.Locked {
			h.loadLock(p, real, m, d)
		}
		h.loadBody(p, m, d)
		q.messages = append(q.messages, m)
	}
	if got := real.Counts(); got.Total() != int64(len(q.messages)) {
		h.w.failf("%v: counts %+v and shows %d messages", p, got, len(q.messages))
	}
	ids, _ := real.Sessions(time.Time{}, 0, math.MaxInt)
	for _, id := range ids {
		if ref, ok := real.SessionState(id); ok {
			state, err := h.s.Read(h.w.ctx, ref)
			if err != nil {
				h.w.failf("%v: state of session %q: %v", p, id, err)
			}
			q.states[id] = string(state.Bytes())
		}
	}
	return q
}

// loadBody reads the body of a message, and the state that a consumer has saved.
func (h *shardSim) loadBody(p place, m *modelMessage, d queue.Delivery) {
	read := func(d queue.Delivery) *message.Message {
		real, err := h.s.Manual().Delivery(p.queue(), d)
		if err != nil {
			h.w.failf("%v: message %d: %v", p, d.Seq, err)
		}
		body, err := real.Message()
		if err != nil {
			h.w.failf("%v: body of message %d: %v", p, d.Seq, err)
		}
		return body
	}
	plain := d
	plain.Saved = queue.Ref{}
	m.setBody(read(plain))
	m.size = int(d.Body.Size)
	if d.Saved == (queue.Ref{}) {
		return
	}
	body := read(d)
	v, _ := body.Property(message.PropertyState)
	state, ok := v.Bytes()
	if !ok {
		h.w.failf("%v: message %d has a saved state, and is delivered without it", p, d.Seq)
	}
	m.save(state)
	if m.savedSize = int(d.Saved.Size); !bytes.Equal(m.body.Bytes(), body.Bytes()) {
		h.w.failf("%v: message %d is not delivered as its body with the saved state", p, d.Seq)
	}
}

// loadLock finds out which token has a lock that a crash has left: one that was given to
// somebody.
func (h *shardSim) loadLock(p place, real *queue.Queue, m *modelMessage, d queue.Delivery) {
	m.durable, m.restored, m.deferred, m.until = true, true, d.Deferred, d.LockedUntil
	for key := range h.given {
		if key.place == p && key.seq == d.Seq && real.LockDurable(time.Time{}, queue.Token{Seq: key.seq, Nonce: key.nonce}) {
			m.nonce = key.nonce
		}
	}
	if m.nonce == 0 {
		h.w.failf("%v: message %d is locked after a crash, and nobody has a token of that", p, d.Seq)
	}
	h.lockLogged(p, m)
}

// adopt replaces the model with what a recovery found. The ids in the duplicate
// windows are not part of that; the model keeps them as far as they were
// durable.
func (h *shardSim) adopt(f finding) {
	old := h.dropped
	maps.Copy(old, h.entities)
	h.dropped = make(map[queueserver.ID]*modelEntity)
	h.load()
	h.survived()
	for id, e := range h.entities {
		e.admitter = newModelAdmitter(e.rules)
		before, ok := old[id]
		if !ok || before.Name != e.Name {
			continue
		}
		for part, q := range e.parts {
			for _, s := range before.parts[part].seen {
				if s.version <= f.version && (s.forgotten == 0 || s.forgotten > f.version) {
					s.version, s.forgotten = 0, 0
					q.seen = append(q.seen, s)
				}
			}
		}
	}
	for _, c := range h.consumers {
		c.over = true
	}
	h.begin()
	h.versions, h.reported, h.open = nil, 0, 0
	h.now = time.Time{}
	h.addVersion()
	for _, e := range h.sorted() {
		h.observe(e.ID)
	}
}

// observe has the model watch the queues of an entity.
func (h *shardSim) observe(id queueserver.ID) {
	for part := queueserver.Main; part <= queueserver.TransferDeadLetter; part++ {
		p := place{id, part}
		if err := h.s.Manual().Observe(p.queue(), &observer{h, p}); err != nil {
			h.w.failf("observe: %v", err)
		}
	}
}

// difference describes how the latest model and the recovered state differ.
func (h *shardSim) difference(r *shardSim) string {
	var b bytes.Buffer
	for _, e := range h.sorted() {
		got, ok := r.entities[e.ID]
		if !ok {
			fmt.Fprintf(&b, "entity %d is missing\n", e.ID)
			continue
		}
		if fmt.Sprint(e.Definition) != fmt.Sprint(got.Definition) {
			fmt.Fprintf(&b, "entity %+v, model %+v\n", got.Definition, e.Definition)
		}
		for part, q := range e.parts {
			g := got.parts[part]
			if have, want := fmt.Sprintf("%+v", g.cfg), fmt.Sprintf("%+v", q.cfg); have != want {
				fmt.Fprintf(&b, "%v: %s, model %s\n", place{e.ID, queueserver.SubQueue(part)}, have, want)
			}
			if !maps.Equal(g.states, q.states) {
				fmt.Fprintf(&b, "%v: states %q, model %q\n", place{e.ID, queueserver.SubQueue(part)}, g.states, q.states)
			}
			if g.last != q.last {
				fmt.Fprintf(&b, "%v: last %d, model %d\n", place{e.ID, queueserver.SubQueue(part)}, g.last, q.last)
			}
			if !slices.Equal(g.started, q.known()) {
				fmt.Fprintf(&b, "%v: started %q, model %q\n", place{e.ID, queueserver.SubQueue(part)}, g.started, q.known())
			}
			differ(&b, place{e.ID, queueserver.SubQueue(part)}, g, q)
		}
	}
	for _, e := range r.sorted() {
		if _, ok := h.entities[e.ID]; !ok {
			fmt.Fprintf(&b, "entity %d should not exist\n", e.ID)
		}
	}
	return b.String()
}

func differ(b *bytes.Buffer, p place, got, want *modelQueue) {
	for _, m := range want.messages {
		g := got.find(m.seq)
		if g == nil {
			fmt.Fprintf(b, "%v: message %d is missing\n", p, m.seq)
			continue
		}
		gv, mv := expected(g), expected(m)
		if mv.state == queue.Locked && !m.durable {
			mv.state = m.resting()
		}
		if g.state == queue.Retrying && !g.notBefore.After(*want.now) {
			gv.state, gv.notBefore = queue.Ready, 0
		}
		if gv != mv || g.sum != m.sum {
			fmt.Fprintf(b, "%v: message %d is %+v, model %+v, same body %t\n", p, m.seq, gv, mv, g.sum == m.sum)
		}
		if g.durable != m.durable || m.durable && (g.nonce != m.nonce || !g.logged.Equal(m.logged)) {
			fmt.Fprintf(b, "%v: message %d is locked durably %t, by %x until %v, model %t, %x, %v\n", p, m.seq, g.durable, g.nonce, g.logged, m.durable, m.nonce, m.logged)
		}
	}
	for _, g := range got.messages {
		if want.find(g.seq) == nil {
			fmt.Fprintf(b, "%v: message %d should not exist\n", p, g.seq)
		}
	}
}
