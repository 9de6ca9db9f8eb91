// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// seek attaches to a session: a named one, or the best there is.
func (h *shardSim) seek(c *consumer) {
	w := h.w
	var name *string
	if w.chance(2) {
		s := w.session()
		name = &s
	}
	answered := false
	if q := h.queue(c.place); c.ranged() {
		q.turns.ranged = true
	}
	o := &op{name: fmt.Sprint("seek ", c.place)}
	w.event("post %d %s", h.number, o.name)
	id := h.s.AddSink(c)
	h.seeking[id] = &seeking{c, name}
	err := h.s.AcceptSession(queueserver.Attachment{Consumer: id, ID: c.id, SubQueue: c.part, Take: c.want}, name,
		func(l queue.SessionLock, _ time.Time, err error) {
			answered = true
			h.sessionAnswered(c, id, l, name, err)
		})
	if err != nil {
		w.failf("seek: %v", err)
	}
	h.mark(func() {
		if name != nil && !answered && h.seeking[id] != nil {
			w.failf("%s: a named session was neither granted nor refused", o.name)
		}
	})
}

// seeking is a consumer that waits for a session: the named one, or any if name is nil.
type seeking struct {
	c    *consumer
	name *string
}

// sessionAnswered checks the answer to seek.
func (h *shardSim) sessionAnswered(c *consumer, id queueserver.ConsumerID, l queue.SessionLock, name *string, err error) {
	w, q := h.w, h.queue(c.place)
	err = plain(err)
	w.event("seated %d %v %v", h.number, c.place, err)
	if err != nil {
		refused := q == nil || errors.Is(err, errDropped) || name != nil && q.held[*name].nonce != 0
		if !refused && !h.excused(err) {
			w.failf("%v: no session: %v", c.place, err)
		}
		if h.seeking[id] == nil {
			h.granting-- // the process ends
		}
		delete(h.seeking, id)
		return
	}
	h.granting--
	if h.seeking[id] != nil || c.want.Session != l {
		w.failf("%v: session %q was not granted before the answer", c.place, l.ID)
	}
	h.noteReported(c.granted)
	c.consumer = id
	h.mark(func() { h.allowMore(c, 3) })
}

// SessionGranted implements queueserver.SessionObserver.
func (o *observer) SessionGranted(_ time.Time, id queueserver.ConsumerID, l queue.SessionLock, until time.Time) {
	x := o.h.seeking[id]
	if x == nil {
		o.h.w.failf("%v: session %q was granted to a consumer that does not wait", o.place, l.ID)
	}
	delete(o.h.seeking, id)
	o.h.granting++
	x.c.granted = o.h.version() - 1 // it may have its session by that
	o.h.sessionGranted(x.c, l, x.name, until)
}

// sessionGranted checks a grant, when it is made, and makes it in the model.
func (h *shardSim) sessionGranted(c *consumer, l queue.SessionLock, name *string, until time.Time) {
	w, q := h.w, h.queue(c.place)
	h.follow(c.place)
	c.want.Session = l
	if q.held[l.ID].nonce != 0 {
		w.failf("%v: session %q was granted twice", c.place, l.ID)
	}
	if name != nil && l.ID != *name {
		w.failf("%v: got session %q, want %q", c.place, l.ID, *name)
	}
	if name == nil {
		h.nextSession(c, q)
	}
	q.mayBeEvaluated()
	q.held[l.ID] = lockedSession{l.Nonce, h.now.Add(q.cfg.LockFor)}
	if !until.Equal(h.now.Add(q.cfg.LockFor)) {
		w.failf("%v: session %q is locked until %v, want %v", c.place, l.ID, until, h.now.Add(q.cfg.LockFor))
	}
	h.consumers = append(h.consumers, c)
}

// nextSession checks that a consumer was granted the best free session.
func (h *shardSim) nextSession(c *consumer, q *modelQueue) {
	if q.blurred(h.now) { // it is uncertain which keys were served
		q.turns.unjust, q.turns.vague = true, true
	}
	if q.turns.vague {
		return
	}
	of := slices.DeleteFunc(q.choices(h.now, c.accepts), func(m *modelMessage) bool { return m.session != c.want.Session.ID })
	if len(of) == 0 {
		h.w.failf("%v: session %q was granted, and is not the best", c.place, c.want.Session.ID)
	}
	if len(of) > 1 { // which of its messages had its turn is not known
		q.turns.unjust, q.turns.vague = true, q.paced()
		return
	}
	if err := q.served(h.now, of[0], !c.ranged()); err != nil {
		h.w.failf("%v: session %q: %v", c.place, c.want.Session.ID, err)
	}
}

// session draws a session id; the empty string is valid.
func (w *world) session() string { return strings.Repeat("s", w.rng.IntN(4)) }
