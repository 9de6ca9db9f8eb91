// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// client does one thing that a client might do.
func (h *shardSim) client() {
	w := h.w
	if len(h.entities) == 0 || len(h.entities) < 4 && w.chance(20) {
		h.define()
		return
	}
	if len(h.recalls.open) > 0 && w.chance(3) {
		h.answerRecall()
		return
	}
	if w.durable.IntN(3) == 0 {
		h.keep()
	}
	switch n := w.rng.IntN(100); {
	case n < 34:
		h.send()
	case n < 44:
		h.attach()
	case n < 56:
		h.allow()
	case n < 80:
		h.settle()
	case n < 83:
		h.detach()
	case n < 93:
		h.manage()
	case n < 95:
		h.redefine()
	case n < 96 && w.chance(3):
		h.drop()
	case len(h.unread) > 0:
		i := w.rng.IntN(len(h.unread))
		u := h.unread[i]
		h.unread = slices.Delete(h.unread, i, i+1)
		h.read(u)
	}
}

// anyEntity returns one of the entities.
func (h *shardSim) anyEntity() *modelEntity {
	es := h.sorted()
	return es[h.w.rng.IntN(len(es))]
}

// anyPlace returns a queue, mostly a main one.
func (h *shardSim) anyPlace() place {
	p := place{id: h.anyEntity().ID}
	if h.w.chance(4) {
		p.part = queueserver.DeadLetter
	}
	return p
}

// window is the only length of duplicate windows. A window that grows does not
// contain the older ids that it would now keep, which is allowed and not
// modelled.
const window = 30 * time.Second

// config draws the settings of a queue that has a policy.
func (w *world) config(r *rules) queue.Config {
	cfg := queue.Config{
		LockFor:           time.Duration(w.pick(1, 5, 30)) * time.Second,
		TTL:               time.Duration(w.pick(0, 0, 0, 10)) * time.Second,
		MaxFailures:       uint32(w.pick(0, 1, 2, 5)),
		MaxCount:          int64(w.pick(0, 0, 0, 10, 40)),
		MaxBytes:          int64(w.pick(0, 0, 0, 5000)),
		DeadLetterExpired: w.chance(2),
		SendPaused:        w.chance(12),
		ReceivePaused:     w.chance(12),
		Order:             r.real.Order(),
	}
	if w.chance(3) {
		cfg.DuplicateWindow = window
	}
	return cfg
}

func (h *shardSim) define() {
	w := h.w
	r, meta := w.policy()
	cfg := w.config(r)
	cfg.Sessions = w.chance(4)
	def := queueserver.Definition{Name: fmt.Sprintf("entity-%d", w.made), Meta: meta, Sessions: cfg.Sessions}
	dead := queue.Config{LockFor: cfg.LockFor}
	cfgs := map[queueserver.SubQueue]queue.Config{queueserver.Main: cfg, queueserver.DeadLetter: dead, queueserver.TransferDeadLetter: dead}
	if w.chance(3) {
		delete(cfgs, queueserver.TransferDeadLetter)
	}
	h.do("define "+def.Name, nil, func(o *op) error {
		return queueserver.Post(h.s, queueserver.Define{Definition: def, Configs: cfgs}, func(_ queueserver.ID, err error) { h.answered(o, err) })
	}, func(*op) {
		i := slices.IndexFunc(h.s.Definitions(), func(d queueserver.Definition) bool { return d.Name == def.Name })
		switch {
		case i < 0 && w.full: // the disk has only what settlements need
			return
		case i < 0:
			w.failf("define %s: it is not there", def.Name)
		}
		def.ID = h.s.Definitions()[i].ID
		if _, used := h.entities[def.ID]; used {
			w.failf("define %s: number %d is taken", def.Name, def.ID)
		}
		e := &modelEntity{Definition: def, rules: r, admitter: newModelAdmitter(r)}
		for part := range e.parts {
			c := cfgs[queueserver.SubQueue(part)]
			c.Sessions = cfg.Sessions && part == 0
			c.DeadLetterQueue = part != 0
			e.parts[part] = newModelQueue(c, &h.now)
		}
		h.entities[def.ID] = e
		h.observe(def.ID)
	})
}

func (h *shardSim) redefine() {
	w, id := h.w, h.anyEntity().ID
	r, meta := w.policy()
	cfg := w.config(r)
	var want error
	h.do(fmt.Sprint("redefine ", id), func() {
		if h.entities[id] == nil {
			want = queueserver.ErrNoEntity
			return
		}
		h.follow(place{id: id}) // it may have switched to the settings before
	}, func(o *op) error {
		return queueserver.Post(h.s, queueserver.Configure{ID: id, Meta: meta, Configs: map[queueserver.SubQueue]queue.Config{queueserver.Main: cfg}},
			func(_ struct{}, err error) { h.expect(o, err, want) })
	}, func(*op) {
		refused := w.full && !slices.ContainsFunc(h.s.Definitions(), func(d queueserver.Definition) bool {
			return d.ID == id && bytes.Equal(d.Meta, meta)
		})
		if e := h.entities[id]; e != nil && !refused {
			e.Meta, e.rules = meta, r
			e.admitter.replace(r)
			e.parts[queueserver.Main].configure(cfg, h.version())
			h.follow(place{id: id})
		}
	})
}

// errDropped stands in traces for the reason that consumers of a dropped entity are
// given.
var errDropped = errors.New("dropped")

// plain returns errDropped for that reason, and any other error as it is.
func plain(err error) error {
	if errors.Is(err, queueserver.ErrNoEntity) && strings.HasSuffix(err.Error(), "was deleted") {
		return errDropped
	}
	return err
}

func (h *shardSim) drop() {
	id := h.anyEntity().ID
	var want error
	var ended []*consumer // by it
	waiting := make(map[queueserver.ConsumerID]*seeking)
	h.do(fmt.Sprint("drop ", id), func() {
		if h.entities[id] == nil {
			want = queueserver.ErrNoEntity
		}
	}, func(o *op) error {
		return queueserver.Post(h.s, queueserver.Drop{IDs: []queueserver.ID{id}}, func(_ struct{}, err error) {
			for _, c := range ended {
				if c.ending && err == nil {
					h.w.failf("%v: its queue was dropped and it was not notified", c.place)
				}
			}
			for waiter, x := range waiting {
				if h.seeking[waiter] == x && err == nil {
					h.w.failf("%v: its queue was dropped, and consumer %d waits for a session", x.c.place, waiter)
				}
			}
			h.expect(o, err, want)
		})
	}, func(*op) {
		if e := h.entities[id]; e != nil {
			h.dropped[id] = e
		}
		delete(h.entities, id)
		for p := range h.held {
			if p.id == id {
				delete(h.held, p)
			}
		}
		for key := range h.taken {
			if key.id == id {
				delete(h.taken, key)
			}
		}
		for _, c := range h.consumers {
			if c.id == id && !c.over {
				c.over, c.ending = true, true // it is notified when the drop is durable
				ended = append(ended, c)
			}
		}
		for waiter, x := range h.seeking {
			if x.c.id == id {
				waiting[waiter] = x
			}
		}
	})
}

// expect compares an answer with the model's. A process that is about to end
// may return any error.
func (h *shardSim) expect(o *op, got, want error) {
	if !errors.Is(got, want) && !h.excused(got) {
		h.w.failf("%s: got %v, want %v", o.name, got, want)
	}
	h.answered(o, got)
}

// excused reports whether an error is the disk's.
func (h *shardSim) excused(err error) bool {
	return err != nil && (h.s.Failed() != nil || h.w.full && errors.Is(err, queueserver.ErrDiskFull))
}

// body makes a message that no other is like.
func (w *world) body() *message.Message {
	w.made++
	size := w.pick(10, 50, 200, 200, 900)
	d := message.Draft{Body: fmt.Appendf(nil, "%d %s", w.made, strings.Repeat("x", w.rng.IntN(size)+1))}
	say := func(name string, v codec.Value) {
		if !w.chance(5) {
			d.Application = append(d.Application, message.Pair{Name: name, Value: v})
		}
	}
	say("kind", codec.String(string(rune('a'+w.rng.IntN(3)))))
	say("n", codec.Int(int32(w.rng.IntN(6))))
	say("tenant", codec.String(fmt.Sprint("t", w.pick(0, 0, 0, 1, 2, 3, 11))))
	level := w.pick(0, 4, 4, 5, 9, 255)
	if w.chance(2) {
		level = w.rng.IntN(8)
	}
	say("Priority", codec.Int(int32(level)))
	return d.Message()
}

func (h *shardSim) attach() {
	w, p := h.w, h.anyPlace()
	if len(h.consumers) > 12 {
		h.consumers = slices.DeleteFunc(h.consumers, func(c *consumer) bool { return c.over })
		if len(h.consumers) > 12 {
			h.detach()
			return
		}
	}
	c := &consumer{h: h, place: p}
	c.want.ReceiveAndDelete = w.chance(4)
	if w.chance(4) {
		c.want.MinLevel = queue.Level(w.rng.IntN(4))
		c.want.MaxLevel = c.want.MinLevel + queue.Level(w.rng.IntN(4))
		c.want.HasMaxLevel = w.chance(2)
	}
	c.want.DurableLock = w.durable.IntN(3) == 0
	c.gives = w.chance(2) && !h.queue(p).cfg.Sessions
	if h.queue(p).cfg.Sessions {
		h.seek(c)
		return
	}
	var want, got error
	h.do(fmt.Sprint("attach ", p), func() {
		if h.queue(p) == nil {
			want = queueserver.ErrNoEntity
		}
	}, func(o *op) error {
		id := h.s.AddSink(c)
		return h.s.Attach(queueserver.Attachment{Consumer: id, ID: p.id, SubQueue: p.part, Take: c.want, Recall: c.gives}, func(err error) {
			if got = err; err == nil {
				c.consumer = id
			}
			h.open--
		})
	}, func(o *op) {
		if !errors.Is(got, want) {
			w.failf("%s: got %v, want %v", o.name, got, want)
		}
		if got == nil {
			h.consumers = append(h.consumers, c)
			h.queue(p).turns.ranged = h.queue(p).turns.ranged || c.ranged()
		}
	})
	n := uint64(w.rng.IntN(6))
	h.mark(func() {
		if c.consumer != 0 {
			h.allowMore(c, n)
		}
	})
}

// allowMore raises a consumer's limit from inside the shard's turn.
func (h *shardSim) allowMore(c *consumer, n uint64) {
	total := c.delivered + n
	h.mark(c.drain) // the shard serves a drain before it allows more
	if err := h.s.SetDeliveryLimit(c.consumer, total); err != nil {
		h.w.failf("allow: %v", err)
	}
	h.mark(func() {
		c.limit, c.most, c.idle, c.void = total, max(c.most, total), false, false
	})
}

// alive returns a consumer that is attached.
func (h *shardSim) alive() *consumer {
	var cs []*consumer
	for _, c := range h.consumers {
		if !c.over && c.consumer != 0 && !slices.Contains(h.leaving, c) {
			cs = append(cs, c)
		}
	}
	if len(cs) == 0 {
		return nil
	}
	return cs[h.w.rng.IntN(len(cs))]
}

func (h *shardSim) allow() {
	c := h.alive()
	if c == nil {
		return
	}
	if h.w.chance(6) {
		h.w.event("post %d drain %v", h.number, c.place)
		h.mark(func() { c.draining = true })
		if err := h.s.Drain(c.consumer); err != nil {
			h.w.failf("drain: %v", err)
		}
		return
	}
	h.w.event("post %d allow %v", h.number, c.place)
	h.allowMore(c, uint64(h.w.rng.IntN(8)))
}

func (h *shardSim) detach() {
	c := h.alive()
	if c == nil {
		return
	}
	h.w.event("post %d detach %v", h.number, c.place)
	if err := h.s.Detach(c.consumer); err != nil {
		h.w.failf("detach: %v", err)
	}
	h.mark(func() {
		h.leaving = append(h.leaving, c)
		h.depart()
		h.addVersion()
	})
}

// depart tracks the consumers that are leaving. A consumer with a session
// leaves when the shard has released the session, which may wait for a
// settlement that needs a body.
func (h *shardSim) depart() {
	h.leaving = slices.DeleteFunc(h.leaving, func(c *consumer) bool {
		q, l := h.queue(c.place), c.want.Session
		if c.over || q == nil {
			return true // it ended by itself before that
		}
		if l.Nonce != 0 && h.sessionLocked(c.place, l) {
			return false
		}
		c.over = true
		if s := q.held[l.ID]; l.Nonce != 0 && s.nonce == l.Nonce && s.until.After(h.now) {
			q.freeSession(l.ID, q.rest)
		}
		return true
	})
}

// sessionLocked reports whether a session is locked.
func (h *shardSim) sessionLocked(p place, l queue.SessionLock) bool {
	m := h.s.Manual()
	real, err := m.Queue(p.queue())
	return err == nil && real.SessionLockValid(m.Now(), l)
}
