// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// What outlives a crash, beside the messages: durable locks, saved states, and waits for a retry.

// renewal is a lock with the end that a renewal gave it.
type renewal struct {
	taking
	until int64
}

// keep renews locks durably, saves the state of a message, or has it wait for a retry; also
// with tokens of an earlier process, which are valid if their locks were durable.
func (h *shardSim) keep() {
	w := h.w
	if len(h.stale) == 0 {
		return
	}
	any := func() token { return h.stale[len(h.stale)-1-w.durable.IntN(min(len(h.stale), 8))] }
	t := any()
	switch w.durable.IntN(6) {
	case 0:
		h.save(t)
		return
	case 1:
		h.handBack(t)
		return
	case 2:
		x := &queueserver.Settle{ID: t.id, SubQueue: t.part, Tokens: []queue.Token{t.Token}, Disposition: queueserver.Abandon, RetryAfter: w.retryAfter()}
		h.postSettle(fmt.Sprintf("retry %v %v after %v", t.place, t.Token, x.RetryAfter), x)
		return
	}
	tokens := []queue.Token{t.Token}
	if more := any(); more.place == t.place && w.durable.IntN(2) == 0 {
		tokens = append(tokens, more.Token) // perhaps the same
	}
	h.renewDurably(t.place, tokens)
}

// handBack releases a message while another consumer has credit. The crash that may follow in
// the same step must not leave it locked if that has got it.
func (h *shardSim) handBack(t token) {
	x := &queueserver.Settle{ID: t.id, SubQueue: t.part, Tokens: []queue.Token{t.Token}, Disposition: queueserver.Release}
	h.postSettle(fmt.Sprintf("hand back %v %v", t.place, t.Token), x)
	i := slices.IndexFunc(h.consumers, func(c *consumer) bool {
		return c.place == t.place && !c.over && c.consumer != 0 && !c.want.DurableLock && !slices.Contains(h.leaving, c)
	})
	if i >= 0 {
		h.allowMore(h.consumers[i], 2)
	}
	h.crashes = h.w.durable.IntN(2) == 0
}

// retryAfter draws how long a message waits for a retry; some do not.
func (w *world) retryAfter() time.Duration {
	return time.Duration(w.durable.IntN(20_000)-2000) * time.Millisecond
}

// sessionLocks returns the locks that consumers have on sessions of a queue.
func (h *shardSim) sessionLocks(p place) (ls []queue.SessionLock) {
	for _, c := range h.consumers {
		if c.place == p && c.want.Session.Nonce != 0 {
			ls = append(ls, c.want.Session)
		}
	}
	return ls
}

// holding returns the messages that tokens lock, and the error if they do not, or not in
// one of the sessions.
func (h *shardSim) holding(p place, tokens []queue.Token, sessions []queue.SessionLock) (ms []*modelMessage, err error) {
	q := h.queue(p)
	if q == nil {
		return nil, queueserver.ErrNoEntity
	}
	for _, t := range tokens {
		m := q.holder(h.now, t)
		if m == nil || q.cfg.Sessions && !slices.Contains(sessions, queue.SessionLock{ID: m.session, Nonce: q.held[m.session].nonce}) {
			return nil, q.lost()
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// durable reports whether a lock is durable in the real queue.
func (h *shardSim) durable(p place, t queue.Token) bool {
	real, err := h.s.Manual().Queue(p.queue())
	return err == nil && real.LockDurable(h.now, t)
}

func (h *shardSim) renewDurably(p place, tokens []queue.Token) {
	w, sessions := h.w, h.sessionLocks(p)
	var ms []*modelMessage
	var want error
	var until []time.Time
	h.do(fmt.Sprintf("renew durably %v %v", p, tokens), func() {
		ms, want = h.holding(p, tokens, sessions)
	}, func(o *op) error {
		x := queueserver.Renew{Queue: p.queue(), Tokens: tokens, Sessions: sessions, Durable: true}
		return queueserver.Post(h.s, x, func(got []time.Time, err error) {
			if err == nil && !slices.EqualFunc(got, until, time.Time.Equal) {
				w.failf("%s: got %v, want %v", o.name, got, until)
			}
			h.expect(o, err, want)
		})
	}, func(o *op) {
		for i, m := range ms {
			w.result.Renewals++
			was, certain := m.durable, !w.full
			until = append(until, h.renewed(p, m))
			durable := h.durable(p, tokens[i])
			switch q := h.queue(p); {
			case q.cfg.Sessions:
				continue
			case !durable && (certain || was):
				w.failf("%s: the lock of message %d is not durable", o.name, m.seq)
			case durable && was && !certain: // that there was space to log it is not known
				if !m.until.Equal(m.logged) {
					h.unlogged[renewal{taking{p, m.seq, m.nonce}, nano(m.until)}] = m.logged
				}
			default:
				if m.durable = durable; durable {
					h.lockLogged(p, m)
				}
			}
		}
	})
}

// renewed extends the lock of a message in the model, and returns until when it is valid.
func (h *shardSim) renewed(p place, m *modelMessage) time.Time {
	q := h.queue(p)
	q.change()
	if q.cfg.Sessions {
		return q.held[m.session].until
	}
	m.until, m.restored = h.now.Add(q.cfg.LockFor), false
	return m.until
}

// lockLogged records that the end of a durable lock is logged.
func (h *shardSim) lockLogged(p place, m *modelMessage) {
	m.logged = m.until
	if was, ok := h.unlogged[renewal{taking{p, m.seq, m.nonce}, nano(m.until)}]; ok {
		m.logged = was // a record may have only the end before
	}
}

// save saves a state of a message, in place of the one that it has.
func (h *shardSim) save(t token) {
	w, p, sessions := h.w, t.place, h.sessionLocks(t.place)
	w.saved++
	state := fmt.Appendf(nil, "state %d %s", w.saved, bytes.Repeat([]byte("y"), w.durable.IntN(100)))
	var m *modelMessage
	var want error
	var was queue.Ref
	var until time.Time
	h.do(fmt.Sprintf("save %v %v", p, t.Token), func() {
		var ms []*modelMessage
		if ms, want = h.holding(p, []queue.Token{t.Token}, sessions); want != nil {
			return
		}
		m = ms[0]
		q := h.queue(p)
		real, err := h.s.Manual().Queue(p.queue())
		if err != nil {
			w.failf("%v: %v", p, err)
		}
		q.catchUp(real)
		d, _ := real.Lookup(m.seq)
		was = d.Saved
		most := h.queue(place{id: p.id}).cfg.MaxBytes // also of dead letters
		if grown := int64(savedSize(state) - m.savedSize); grown > 0 && most > 0 && q.footprint(q.counts())+grown > most {
			m, want = nil, queue.ErrFull
		}
	}, func(o *op) error {
		x := queueserver.Save{Queue: p.queue(), Token: t.Token, State: state, Sessions: sessions}
		return queueserver.Post(h.s, x, func(got time.Time, err error) {
			if err == nil && (m == nil || !got.Equal(until)) {
				w.failf("%s: valid until %v, want %v", o.name, got, until)
			}
			h.expect(o, err, want)
		})
	}, func(o *op) {
		if m == nil {
			return
		}
		real, err := h.s.Manual().Queue(p.queue())
		if err != nil {
			w.failf("%v: %v", p, err)
		}
		switch d, _ := real.Lookup(m.seq); {
		case d.Saved == was && w.full: // the disk has only what settlements need
			m = nil
			return
		case d.Saved == was:
			w.failf("%s: message %d has the state that it had", o.name, m.seq)
		}
		w.result.Saves++
		until = h.renewed(p, m)
		m.save(state)
		m.changed = h.version()
		if !h.queue(p).cfg.Sessions {
			m.durable = true
			h.lockLogged(p, m)
		}
	})
}

// survived counts the durable locks that a crash has left.
func (h *shardSim) survived() {
	for _, e := range h.sorted() {
		for _, q := range e.parts {
			for _, m := range q.messages {
				if m.durable {
					h.w.result.Survivors++
				}
			}
		}
	}
}
