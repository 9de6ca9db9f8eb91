// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// manage posts an operation on one queue that is not on the hot path. The model
// does the same in the same moment.
func (h *shardSim) manage() {
	if h.w.chance(13) {
		h.purge()
		return
	}
	p := h.anyPlace()
	ops := []struct {
		name string
		do   func(*managing) error
	}{
		{"peek", (*managing).peek},
		{"renew", (*managing).renew},
		{"cancel", (*managing).cancel},
		{"take", (*managing).take},
		{"take", (*managing).take},
		{"remove", (*managing).remove},
		{"reclass", (*managing).reclass},
		{"classify", (*managing).classify},
		{"classify", (*managing).classify},
		{"state", (*managing).state},
		{"renew session", (*managing).renewSession},
		{"note", (*managing).note},
	}
	x := ops[h.w.rng.IntN(len(ops))]
	var want error
	h.do(fmt.Sprint(x.name, " ", p), nil, func(o *op) error {
		s := h.s.Manual()
		return s.Inject(func() error {
			q := h.queue(p)
			if q == nil {
				want = queueserver.ErrNoEntity
			}
			return s.Apply(p.queue(), func(real *queue.Queue, out *queue.Effects) error {
				q.reorder(real)
				m := &managing{h, p, s, q, real, out}
				want = x.do(m)
				return want
			})
		}, func(err error) { h.expect(o, err, want) })
	}, nil)
}

// managing is one such operation at work.
type managing struct {
	h *shardSim
	place
	s     queueserver.Manual
	model *modelQueue
	real  *queue.Queue
	out   *queue.Effects
}

func (x *managing) failf(format string, args ...any) {
	x.h.w.failf("%v: %s", x.place, fmt.Sprintf(format, args...))
}

// number returns the sequence number of some message, mostly of one that
// exists.
func (x *managing) number() queue.SeqNo {
	if len(x.model.messages) == 0 || x.h.w.chance(8) {
		return queue.SeqNo(x.h.w.rng.IntN(int(x.model.last) + 2))
	}
	return x.model.messages[x.h.w.rng.IntN(len(x.model.messages))].seq
}

func (x *managing) peek() error {
	from, most := x.number(), 1+x.h.w.rng.IntN(10)
	var session *string
	if x.h.w.chance(2) {
		id := x.h.w.session()
		session = &id
	}
	var got []queue.Delivery
	for next := from; len(got) < most; { // in steps, with nothing in between
		var ds []queue.Delivery
		ds, next = x.real.Peek(x.s.Now(), queue.Peek{From: next, Max: most - len(got), Visits: x.s.Visits(), Session: session})
		if got = append(got, ds...); next == 0 {
			break
		}
	}
	for _, m := range x.model.messages {
		if m.seq < from || most == 0 || m.expired(x.h.now) || session != nil && (!m.inSession || m.session != *session) {
			continue
		}
		most--
		if len(got) == 0 || got[0].Seq != m.seq || seen(got[0]) != expected(m) {
			x.failf("peek from %d: message %d is not shown as it is", from, m.seq)
		}
		got = got[1:]
	}
	if len(got) > 0 {
		x.failf("peek from %d: message %d should not be there", from, got[0].Seq)
	}
	return nil
}

func (x *managing) renew() error {
	t, ok := x.h.anyToken()
	if !ok || t.place != x.place {
		return nil
	}
	m := x.model.holder(x.h.now, t.Token)
	var until time.Time
	var err error
	if m != nil && m.durable { // else a restart would not know of it
		until, err = x.real.RenewDurably(x.s.Now(), t.Token, x.out)
	} else {
		until, err = x.real.Renew(x.s.Now(), t.Token)
	}
	if m == nil {
		if !errors.Is(err, x.model.lost()) {
			x.failf("renew %v: got %v, want %v", t, err, x.model.lost())
		}
		return err
	}
	want := x.h.now.Add(x.model.cfg.LockFor)
	if x.model.cfg.Sessions {
		want = x.model.held[m.session].until
	}
	x.model.change()
	if m.until = want; m.durable {
		x.h.lockLogged(x.place, m)
	}
	if err != nil || !until.Equal(want) {
		x.failf("renew %v: got %v, %v, want %v", t, until, err, want)
	}
	return nil
}

func (x *managing) cancel() error {
	seqs := []queue.SeqNo{x.number()}
	for x.h.w.chance(2) {
		seqs = append(seqs, x.number()) // perhaps the same
	}
	err := x.real.Cancel(x.s.Now(), seqs, x.out)
	for _, seq := range seqs {
		if m := x.model.find(seq); m == nil || m.state != queue.Scheduled {
			if !errors.Is(err, queue.ErrNotFound) {
				x.failf("cancel %v: got %v, want %v", seqs, err, queue.ErrNotFound)
			}
			return err
		}
	}
	for _, seq := range seqs {
		if m := x.model.find(seq); m != nil {
			x.model.remove(m)
		}
	}
	if err != nil {
		x.failf("cancel %v: %v", seqs, err)
	}
	return nil
}

// takeable returns the error that a take by number must get.
func (x *managing) takeable(m *modelMessage, w queue.TakeOptions) error {
	q := x.model
	held := q.held[w.Session.ID]
	switch {
	case q.cfg.ReceivePaused:
		return queue.ErrReceivePaused
	case q.cfg.Sessions && (held.nonce == 0 || held.nonce != w.Session.Nonce || !held.until.After(x.h.now)):
		return queue.ErrSessionLockLost
	case m == nil || q.cfg.Sessions && m.session != w.Session.ID:
		return queue.ErrNotFound
	case m.state == queue.Locked:
		return queue.ErrLocked
	case m.state == queue.Scheduled || m.state == queue.Retrying || m.expirable(x.h.now):
		return queue.ErrNotFound
	}
	return nil
}

func (x *managing) take() error {
	seq, w := x.number(), queue.TakeOptions{ReceiveAndDelete: x.h.w.chance(4), DurableLock: x.h.w.durable.IntN(3) == 0}
	if c := x.h.alive(); c != nil && c.place == x.place {
		w.Session = c.want.Session
	}
	m := x.model.find(seq)
	want := x.takeable(m, w)
	d, err := x.real.TakeSeq(x.s.Now(), seq, w, x.out)
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		x.failf("take %d: got %v, want %v", seq, err, want)
	}
	if want != nil {
		if _, ok := x.real.Lookup(seq); m != nil && !ok && !x.model.cfg.DeadLetterExpired {
			x.model.remove(m) // it had expired
		}
		return err
	}
	// It is read in the same turn, so that the body of a received-and-deleted
	// message is read before it can be freed.
	real, err := x.s.Delivery(x.queue(), d)
	if err != nil {
		x.failf("take %d: %v", seq, err)
	}
	if body, err := real.Message(); err != nil || string(body.Bytes()) != string(m.body.Bytes()) {
		x.failf("take %d: another body, or none: %v", seq, err)
	}
	x.model.hand(m)
	if w.ReceiveAndDelete {
		x.model.remove(m)
		return nil
	}
	x.model.change()
	x.model.moved(m.key)
	m.deferred = m.state == queue.Deferred
	m.state, m.nonce, m.until = queue.Locked, d.Token.Nonce, x.h.now.Add(x.model.cfg.LockFor)
	m.durable, m.logged = x.h.durable(x.place, d.Token), m.until
	if want := w.DurableLock && !x.model.cfg.Sessions; m.durable != want {
		x.failf("take %d: its lock is durable: %t, want %t", seq, m.durable, want)
	}
	x.h.stale = append(x.h.stale, token{x.place, d.Token, 0})
	x.h.given[taking{x.place, d.Seq, d.Token.Nonce}] = true
	return nil
}

func (x *managing) remove() error {
	seq := x.number()
	err := x.real.Remove(x.s.Now(), seq, x.out)
	m := x.model.find(seq)
	var want error
	switch {
	case m == nil:
		want = queue.ErrNotFound
	case m.state == queue.Locked:
		want = queue.ErrLocked
	default:
		x.model.remove(m)
	}
	if !errors.Is(err, want) {
		x.failf("remove %d: got %v, want %v", seq, err, want)
	}
	return err
}

func (x *managing) state() error {
	if !x.model.cfg.Sessions {
		return nil
	}
	id, now := x.h.w.session(), x.s.Now()
	x.model.change()
	if x.h.w.chance(3) {
		delete(x.model.states, id)
		x.real.SetSessionState(now, id, queue.Ref{}, x.out)
		return nil
	}
	x.h.w.made++
	d := message.Draft{Body: fmt.Append(nil, "state ", x.h.w.made)}
	ref, err := x.s.Store(d.Encode(nil))
	if err != nil {
		return err // the disk is full, and that is the end
	}
	x.model.states[id] = string(d.Encode(nil))
	x.real.SetSessionState(now, id, ref, x.out)
	return nil
}

func (x *managing) renewSession() error {
	c := x.h.alive()
	if c == nil || c.place != x.place || c.want.Session.Nonce == 0 {
		return nil
	}
	l := c.want.Session
	until, err := x.real.RenewSession(x.s.Now(), l)
	held := x.model.held[l.ID]
	if held.nonce != l.Nonce || !held.until.After(x.h.now) {
		if !errors.Is(err, queue.ErrSessionLockLost) {
			x.failf("renew session %q: got %v, want %v", l.ID, err, queue.ErrSessionLockLost)
		}
		return err
	}
	held.until = x.h.now.Add(x.model.cfg.LockFor)
	x.model.held[l.ID] = held
	if err != nil || !until.Equal(held.until) {
		x.failf("renew session %q: got %v, %v, want %v", l.ID, until, err, held.until)
	}
	return nil
}

func (x *managing) note() error {
	x.h.w.made++
	note := fmt.Append(nil, "note ", x.h.w.made)
	x.h.entities[x.id].Note = note
	return x.s.Note(x.id, note)
}
