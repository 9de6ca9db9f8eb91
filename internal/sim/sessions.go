// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
	settled := false
	if q := h.queue(c.place); c.ranged() {
		q.turns.ranged = true
	}
	o := &op{name: fmt.Sprint("seek ", c.place)}
	w.event("post %d %s", h.number, o.name)
	_, err := h.s.AcceptSession(queueserver.Attachment{ID: c.id, SubQueue: c.part, Sink: c, Take: c.want}, name,
		func(real *queueserver.Consumer, until time.Time, err error) {
			settled = true
			h.sessionGranted(c, real, name, until, err)
		})
	if err != nil {
		w.failf("seek: %v", err)
	}
	h.mark(func() {
		if name != nil && !settled {
			w.failf("%s: a named session was neither granted nor refused", o.name)
		}
	})
}

// sessionGranted checks the answer to seek.
func (h *shardSim) sessionGranted(c *consumer, real *queueserver.Consumer, name *string, until time.Time, err error) {
	w, q := h.w, h.queue(c.place)
	err = plain(err)
	w.event("seated %d %v %v", h.number, c.place, err)
	if err != nil {
		refused := q == nil || errors.Is(err, errDropped) || name != nil && q.held[*name].nonce != 0
		if !refused && !h.excused(err) {
			w.failf("%v: no session: %v", c.place, err)
		}
		return
	}
	h.follow(c.place)
	c.c = real
	l := real.SessionLock()
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
	h.mark(func() { h.allowMore(c, 3) })
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
